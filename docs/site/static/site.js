// What the theme leaves out for those who use a keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".table-wrapper, .highlight pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  for (const caption of document.querySelectorAll(".caption[role=heading]")) {
    caption.setAttribute("aria-level", "2");
  }
  for (const [name, label] of [["sidebar-drawer", "Pages"], ["toc-drawer", "On this page"]]) {
    document.querySelector(`aside.${name}`)?.setAttribute("aria-label", label);
  }
});
