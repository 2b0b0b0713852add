"""Lengths of a batch's requests, by the profiles of headrace-bench.

The same text and seed give the same lengths as there, so rows of both programs are comparable.
"""

import math

MAX_LENGTH = 2**31 - 1
DEFAULT_CLIP = 131072


class Random:
    """The 64-bit Mersenne Twister of the C++ standard, seeded and drawn from as headrace-bench."""

    SIZE, SHIFT = 312, 156
    UPPER, LOWER, MASK = 0xFFFFFFFF80000000, 0x7FFFFFFF, 2**64 - 1

    def __init__(self, seed):
        self.state = [seed & self.MASK]
        for i in range(1, self.SIZE):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ last >> 62) + i) & self.MASK)
        self.next = self.SIZE

    def _advance(self):
        state = self.state
        for i in range(self.SIZE):
            bits = state[i] & self.UPPER | state[(i + 1) % self.SIZE] & self.LOWER
            state[i] = state[(i + self.SHIFT) % self.SIZE] ^ bits >> 1
            if bits & 1:
                state[i] ^= 0xB5026F5AA96619E9
        self.next = 0

    def bits(self):
        if self.next == self.SIZE:
            self._advance()
        word = self.state[self.next]
        self.next += 1
        word ^= word >> 29 & 0x5555555555555555
        word ^= word << 17 & 0x71D67FFFEDA60000
        word ^= word << 37 & 0xFFF7EEE000000000
        return word ^ word >> 43

    def uniform(self):
        """In [0, 1)."""
        return (self.bits() >> 11) * 2.0**-53

    def normal(self):
        """Mean 0, deviation 1 (Box-Muller)."""
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())

    def shuffle(self, values):
        for left in range(len(values), 1, -1):
            place = int(self.uniform() * left)
            values[left - 1], values[place] = values[place], values[left - 1]


def _to_length(tokens, lowest=0, highest=MAX_LENGTH):
    return math.floor(min(max(tokens, lowest), highest) + 0.5)


def _uniform(batch, random, length):
    return [_to_length(length)] * batch


def _lognormal(batch, random, median, sigma, lowest=1, highest=None):
    if highest is None:
        highest = max(lowest, DEFAULT_CLIP)
    return [_to_length(median * math.exp(sigma * random.normal()), lowest, highest)
            for _ in range(batch)]


def _one_long(batch, random, long, num_short, short):
    return [_to_length(long)] + [_to_length(short)] * int(num_short)


def _bimodal(batch, random, short, long, fraction_long):
    num_long = math.floor(fraction_long * batch + 0.5)
    lengths = [_to_length(long)] * num_long + [_to_length(short)] * (batch - num_long)
    random.shuffle(lengths)
    return lengths


def _zipf(batch, random, longest, exponent, lowest=1):
    lengths = [_to_length(longest / rank**exponent, lowest) for rank in range(1, batch + 1)]
    random.shuffle(lengths)
    return lengths


# Generator, fewest and most arguments, usage.
_KINDS = {
    'uniform': (_uniform, 1, 1, 'uniform:len'),
    'lognormal': (_lognormal, 2, 4, 'lognormal:median,sigma[,min,max]'),
    'one-long': (_one_long, 3, 3, 'one-long:long,n,short'),
    'bimodal': (_bimodal, 3, 3, 'bimodal:short,long,fraction_long'),
    'zipf': (_zipf, 2, 3, 'zipf:longest,exponent[,min]'),
}


def _parse_number(text, profile):
    try:
        value = float(text.removesuffix('k')) * (1024 if text.endswith('k') else 1)
    except ValueError:
        value = -1
    if not 0 <= value <= MAX_LENGTH:
        raise ValueError(f"profile '{profile}': needs numbers from 0 to {MAX_LENGTH}, "
                         f"given '{text}'")
    return value


def lengths(profile, batch, seed):
    """The batch's lengths in tokens; `one-long` brings its own number of requests.

    Raises ValueError for a profile that headrace-bench does not have.
    """
    name, _, rest = profile.partition(':')
    if name not in _KINDS:
        usages = ', '.join(usage for *_, usage in _KINDS.values())
        raise ValueError(f"profile '{profile}': needs one of {usages}")
    generate, fewest, most, usage = _KINDS[name]
    arguments = [_parse_number(text, profile) for text in rest.split(',')]
    if not fewest <= len(arguments) <= most:
        raise ValueError(f"profile '{profile}': needs {usage}, given {len(arguments)} values")
    return generate(batch, Random(seed), *arguments)
