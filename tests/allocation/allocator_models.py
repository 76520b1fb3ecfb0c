"""Models of TensorFlow's and PyTorch's allocators, from their published rules and nothing else: slow, and plain to read.

Both get memory at addresses that rise in units of 2 MiB, from 2 MiB on, and are never used again.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Driver:
    """Memory of `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit, self.taken, self.next = limit, 0, 2 * MIB

    def take(self, size: int) -> int | None:
        if self.taken + size > self.limit:
            return None
        self.taken += size
        address, self.next = self.next, self.next + up(size, 2 * MIB)
        return address

    def give_back(self, size: int) -> None:
        self.taken -= size


@dataclass
class Piece:
    """A part of a region, used or free."""

    address: int
    size: int
    used: bool = False


@dataclass
class Region:
    pieces: list[Piece]
    stream: int = 0
    small: bool = False

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    def free(self, piece: Piece) -> None:
        piece.used = False
        merged: list[Piece] = []
        for one in self.pieces:
            if merged and not merged[-1].used and not one.used:
                merged[-1].size += one.size
            else:
                merged.append(one)
        self.pieces = merged

    def cut(self, piece: Piece, size: int) -> None:
        at = self.pieces.index(piece)
        self.pieces.insert(at + 1, Piece(piece.address + size, piece.size - size))
        piece.size = size


class Model:
    """Regions, of which blocks are cut."""

    def __init__(self, limit: int) -> None:
        self.limit, self.driver = limit, Driver(limit)
        self.regions: list[Region] = []

    def free_pieces(self) -> list[tuple[Region, Piece]]:
        return [(region, piece) for region in self.regions for piece in region.pieces if not piece.used]

    def state(self) -> tuple[int, int, int]:
        """Reserved, in use, the largest free block."""
        reserved = sum(region.size for region in self.regions)
        free = [piece.size for _, piece in self.free_pieces()]
        return reserved, reserved - sum(free), max(free, default=0)

    def release(self, block: tuple[Region, Piece]) -> None:
        region, piece = block
        region.free(piece)


class Bfc(Model):
    """Bins of 256 B << b, searched upwards from the request's; within one by size and then by address."""

    def __init__(self, limit: int, growth: bool) -> None:
        super().__init__(limit)
        self.growth = growth
        self.next_region = up(min(limit, 2 * MIB) if growth else limit, 256)

    @staticmethod
    def bin_of(size: int) -> int:
        return min(20, max(0, (size // 256).bit_length() - 1))

    def find(self, size: int) -> tuple[Region, Piece] | None:
        for number in range(self.bin_of(size), 21):
            in_bin = [pair for pair in self.free_pieces() if self.bin_of(pair[1].size) == number]
            for region, piece in sorted(in_bin, key=lambda pair: (pair[1].size, pair[1].address)):
                if piece.size >= size:
                    return region, piece
        return None

    def extend(self, size: int) -> bool:
        available = (self.limit - sum(region.size for region in self.regions)) // 256 * 256
        if size > available:
            return False
        grew = False
        while size > self.next_region:
            self.next_region *= 2
            grew = True
        bytes_ = min(self.next_region, available)
        address = self.driver.take(bytes_)
        assert address is not None  # the limit is the driver's
        if not grew:
            self.next_region *= 2
        self.regions.append(Region([Piece(address, bytes_)]))
        return True

    def allocate(self, requested: int, _stream: int) -> tuple[Region, Piece] | None:
        size = up(requested, 256)
        found = self.find(size)
        if found is None and self.extend(size):
            found = self.find(size)
        if found is None:
            return None
        region, piece = found
        if piece.size >= 2 * size or piece.size - size >= 128 * MIB:
            region.cut(piece, size)
        piece.used = True
        return found


class Caching(Model):
    """Small and large pools, apart for each stream."""

    def find(self, size: int, stream: int, small: bool) -> tuple[Region, Piece] | None:
        fits = [
            (region, piece)
            for region, piece in self.free_pieces()
            if region.stream == stream and region.small == small and piece.size >= size
        ]
        return min(fits, key=lambda pair: (pair[1].size, pair[1].address), default=None)

    def segment(self, size: int, stream: int, small: bool) -> tuple[Region, Piece] | None:
        bytes_ = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else up(size, 2 * MIB)
        address = self.driver.take(bytes_)
        if address is None:
            return None
        region = Region([Piece(address, bytes_)], stream, small)
        self.regions.append(region)
        return region, region.pieces[0]

    def empty_cache(self) -> None:
        kept = []
        for region in self.regions:
            if len(region.pieces) == 1 and not region.pieces[0].used:
                self.driver.give_back(region.size)
            else:
                kept.append(region)
        self.regions = kept

    def allocate(self, requested: int, stream: int) -> tuple[Region, Piece] | None:
        size = up(requested, 512)
        small = size <= MIB
        found = self.find(size, stream, small) or self.segment(size, stream, small)
        if found is None:
            self.empty_cache()
            found = self.segment(size, stream, small)
        if found is None:
            return None
        region, piece = found
        rest = piece.size - size
        if rest >= 512 if small else rest > MIB:
            region.cut(piece, size)
        piece.used = True
        return found


MODELS = {
    "bfc": lambda limit: Bfc(limit, growth=False),
    "bfc_growth": lambda limit: Bfc(limit, growth=True),
    "caching": Caching,
}
