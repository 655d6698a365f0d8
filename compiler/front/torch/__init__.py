"""Programs of ``torch.export`` (``.pt2``) as graph IR, read without torch."""
