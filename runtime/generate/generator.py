"""Texts from a language model: a prompt goes in, pieces of text come out as they are made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..errors import InputError
from ..module import Module
from ..result import RunResult
from ..session import Asked, Session
from .decoder import Decoder
from .roles import Named
from .sampling import Choose, greedy
from .tokenizer import TextReader, Tokenizer, open_tokenizer

__all__ = ["Generator", "Story"]


@dataclass(slots=True)
class Story:
    """A text while it is told, and what that took.

    tokens: all so far, with the ``prompted`` ones of the prompt.  ended: whether
    the model ended the text.  runs: of the model, one for each token that it was given.
    wall_seconds: of all runs.  host_seconds: this CPU's part of them.
    cycles, macs, dram_bytes and launches: the accelerator's, of all runs; 0 without one, whose
    clock_hz is None.
    blocks: runs that read several tokens of the prompt, ``block_tokens`` in all; they count as no
    runs of the model.  block_seconds, block_cycles: as of the runs.
    """

    text: str = ""
    tokens: list[int] = field(default_factory=list)
    prompted: int = 0
    ended: bool = False
    runs: int = 0
    wall_seconds: float = 0.0
    host_seconds: float = 0.0
    clock_hz: int | None = None
    launches: int = 0
    cycles: int = 0
    macs: int = 0
    dram_bytes: int = 0
    blocks: int = 0
    block_tokens: int = 0
    block_seconds: float = 0.0
    block_cycles: int = 0

    @property
    def tokens_per_second(self) -> float:
        """Runs a second: of the accelerator alone, at its clock; without one, as measured."""
        seconds = self.cycles / self.clock_hz if self.clock_hz else self.wall_seconds
        return self.runs / seconds if seconds else 0.0

    def figures(self) -> dict[str, Any]:
        """All that there is, as JSON values; of an accelerator what a token takes, on average."""
        found = {
            "text": self.text,
            "tokens": self.tokens,
            "prompt_tokens": self.prompted,
            "ended": self.ended,
            "runs": self.runs,
            "wall_seconds": self.wall_seconds,
            "tokens_per_second": self.tokens_per_second,
        }
        if self.clock_hz and self.runs:
            found |= {"clock_hz": self.clock_hz}
            for name in ("cycles", "macs", "dram_bytes", "launches", "host_seconds"):
                found[f"{name}_per_token"] = getattr(self, name) / self.runs
        if self.blocks:
            for name in ("blocks", "block_tokens", "block_seconds"):
                found[name] = getattr(self, name)
            if self.clock_hz:
                found["cycles_per_block_token"] = self.block_cycles / self.block_tokens
        return found

    def add(self, result: RunResult, launches: int) -> None:
        """Count a run that took so many launches."""
        self.runs += 1
        self.wall_seconds += result.wall_seconds
        self.host_seconds += result.host_seconds
        self.cycles += result.cycles or 0
        self.macs += result.macs or 0
        self.dram_bytes += (result.dram_bytes_read or 0) + (result.dram_bytes_written or 0)
        self.launches += launches

    def add_block(self, result: RunResult, tokens: int) -> None:
        """Count a run that read so many tokens."""
        self.blocks += 1
        self.block_tokens += tokens
        self.block_seconds += result.wall_seconds
        self.block_cycles += result.cycles or 0


class Generator:
    """A language model that tells texts: a module with its caches, and a tokenizer.

        with dovetail.Generator("story.dvt", "tokenizer.json") as generator:
            for piece in generator.stream("Once upon a time"):
                print(piece, end="", flush=True)
        print(generator.story.tokens_per_second)

    Attributes: ``decoder`` (runs single tokens), ``tokenizer``, ``story`` (the text so far and
    what it took).
    """

    def __init__(
        self,
        module: Module | Path | str,
        tokenizer: Tokenizer | Path | str | None = None,
        device: "Asked | Sequence[Asked] | None" = None,
        named: Named | None = None,
        blocks: Module | Path | str | None = None,
    ) -> None:
        """module, device: as of ``Session``.

        tokenizer: or its file, as ``open_tokenizer`` reads them; None for bytes.
        named: what the model's tensors are for, where their names do not say it.
        blocks: what ``dovetail compile --tokens`` makes of the same model, to read prompts by.
        Raises ModuleError for a model that is not one of single tokens with caches, and for blocks
        of another one, InputError for a tokenizer with more tokens than the model, and what
        ``Session`` raises.
        """
        if tokenizer is None or isinstance(tokenizer, Path | str):
            self.tokenizer = open_tokenizer(tokenizer)
        else:
            self.tokenizer = tokenizer
        reader = None if blocks is None else Session(blocks, device)
        self.decoder = Decoder(Session(module, device), named, reader)
        self.story = Story()
        vocabulary = self.decoder.roles.vocabulary
        if self.tokenizer.size > vocabulary or (tokenizer is None and vocabulary != 256):
            what = "bytes" if tokenizer is None else "the tokenizer"
            raise InputError(
                f"{what}: {self.tokenizer.size} tokens, and the model has {vocabulary}; required "
                "the tokenizer that the model was trained with"
            )

    def stream(
        self, prompt: str = "", steps: int | None = None, choose: Choose = greedy
    ) -> Iterator[str]:
        """The prompt, and then the text that follows it: a piece for each token, of whole
        characters, empty where a character goes on.

        It ends where the model ends it, or after ``steps`` more tokens, or where the
        caches are full.  choose: a token from logits.
        Raises InputError for a prompt that the caches do not hold, and what ``Session.run`` raises.
        """
        decoder, prompted = self.decoder, self.tokenizer.encode(prompt)
        capacity = decoder.roles.capacity
        if not prompted or (capacity is not None and len(prompted) > capacity):
            raise InputError(
                f"the prompt has {len(prompted)} tokens; required 1 to {capacity or 'any number'}"
            )
        decoder.reset()
        self.story = story = Story(prompted=len(prompted), clock_hz=decoder.clock_hz)
        reader = TextReader(self.tokenizer)
        yield self._tell(reader.add(prompted), prompted)
        read = 0
        while read < len(prompted) - 1:
            read += self._read(prompted[read:-1])
        while len(story.tokens) - len(prompted) != steps and not decoder.is_full:
            token = choose(self._run(story.tokens[-1]))
            story.ended = token in self.tokenizer.ends
            if story.ended:
                break
            yield self._tell(reader.add([token]), [token])
        yield self._tell(reader.rest(), [])

    def tell(self, prompt: str = "", steps: int | None = None, choose: Choose = greedy) -> Story:
        """The whole text, as ``stream`` makes it."""
        for _ in self.stream(prompt, steps, choose):
            pass
        return self.story

    def _run(self, token: int) -> NDArray[Any]:
        logits = self.decoder.step(token)
        assert self.decoder.last is not None
        self.story.add(self.decoder.last, self.decoder.launches)
        return logits

    def _read(self, tokens: Sequence[int]) -> int:
        """Run the first tokens of a prompt: a block, or one of them.  Gives how many."""
        count = self.decoder.read(tokens)
        if not count:
            self._run(tokens[0])
            return 1
        assert self.decoder.last is not None
        self.story.add_block(self.decoder.last, count)
        return count

    def _tell(self, text: str, tokens: Sequence[int]) -> str:
        self.story.text += text
        self.story.tokens += tokens
        return text

    def close(self) -> None:
        """Let go of the sessions' parts and devices."""
        self.decoder.session.close()
        if self.decoder.blocks is not None:
            self.decoder.blocks.session.close()

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
