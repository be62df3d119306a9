package contacts

import "math"

// mix is splitmix64's output function: it spreads any change of x over all bits.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// stream is one purpose of drawing: what is drawn follows from the seed, the stream and
// the numbers of what it is drawn for, and from nothing else.
type stream uint64

func streamOf(seed uint64, number int) stream {
	return stream(mix(seed*1000003 + uint64(number)))
}

// of is the stream narrowed down to one more number.
func (s stream) of(id uint64) stream { return stream(mix(uint64(s) ^ id)) }

// hash is a number of its own for an id.
func (s stream) hash(id uint64) uint64 { return mix(uint64(s) ^ id) }

// share is uniform between 0 and 1, exclusively, for an id.
func (s stream) share(id uint64) float64 { return shareOf(s.hash(id)) }

func shareOf(hash uint64) float64 { return (float64(hash>>11) + 0.5) / (1 << 53) }

// seconds is uniform in [low, high) hours, as whole seconds. The conversion forbids fused
// operations, which would make results depend on the processor.
func (s stream) seconds(low, high float64, id uint64) int32 {
	return int32((low + float64((high-low)*s.share(id))) * 3600)
}

// below is uniform in 0..n-1, for an id.
func (s stream) below(n int, id uint64) int { return int(s.share(id) * float64(n)) }

// days is geometric with a mean, at least 1, for an id.
func (s stream) days(mean float64, id uint64) int {
	return 1 + int(math.Floor(math.Log(s.share(id))/math.Log(1-1/mean)))
}
