package contacts

import (
	"math"
	"math/bits"
)

// Pooled is the number of features of a person in a window, with the bias: what it is and
// does, and sums over its contacts.
const Pooled = 18

// Window and Ahead are the days that features look back and labels look ahead.
const (
	Window = 21
	Ahead  = 7
)

// The places of the features.
const (
	featureAge = iota // the first ten are the person's own
	featureChild
	featureOld
	featureSex
	featureHousehold
	featureWorked
	featureSchooled
	featureShopped
	featureHomeOnly
	featureOut
	featureTime0 // time with the infected, by lag of their infection: 0-2, 3-7, 8-20 days
	featureTime3
	featureTime8
	featureCount0 // how many they are
	featureCount3
	featureCount8
	featureRecovered // time with those who have recovered
	featureBias
)

// Lags as bits of a window, whose last bit is today.
const (
	lag0      = 0b111 << 18
	lag3      = 0b11111 << 13
	lag8      = 1<<13 - 1
	today     = 1 << (Window - 1)
	windowAll = 1<<Window - 1
)

// timeWeight is the study's: an hour with somebody infected is ln(1+20/24).
const timeWeight = 20

// logSizes are the logarithms of household sizes.
var logSizes = func() (of [256]float32) {
	for size := 2; size < len(of); size++ {
		of[size] = float32(math.Log(float64(size)))
	}
	return of
}()

// TrainingEnds are the days before which the windows of training end: windows begin on days
// 0, 7, 14, 21 and 28 as far as labels are known.
func (g *Graph) TrainingEnds() []int {
	var ends []int
	for begin := 0; begin <= 28 && begin+Window+Ahead <= g.Days; begin += 7 {
		ends = append(ends, begin+Window)
	}
	return ends
}

// windowOf is the part of a history that ends before day end, today last. Days before the
// first are empty.
func windowOf(history uint64, end int) uint64 {
	if end < Window {
		return history << uint(Window-end) & windowAll
	}
	return history >> uint(end-Window) & windowAll
}

// Fill writes the features of person i for the window of 21 days that ends before day end,
// from 0 to Days, to dst. Contacts are those of k, or all if k is nil, as for prediction.
// All constants are public ones: nobody else's data scale a person's. Sums are of whole
// numbers, so that the order of contacts does not show.
func (g *Graph) Fill(dst []float32, k *Kept, i, end int) {
	dst = dst[:Pooled]
	clear(dst)
	g.fillOwn(dst, i)
	others, hows := g.contactsOf(k, i)
	var time [3]int // seconds times days
	var count [3]int
	recovered := 0
	for at, j := range others {
		infected, gone := windowOf(g.Infected[j], end), windowOf(g.Recovered[j], end)
		if infected|gone == 0 {
			continue
		}
		seconds := hows[at].Seconds()
		if gone&today != 0 {
			recovered += seconds
		}
		for lag, mask := range [3]uint64{lag0, lag3, lag8} {
			days := bits.OnesCount64(infected & mask)
			count[lag] += days
			time[lag] += days * seconds
		}
	}
	for lag, days := range [3]float64{3, 5, 13} {
		if count[lag] > 0 {
			dst[featureTime0+lag] = float32(math.Log1p(timeWeight * float64(time[lag]) / (daySeconds * days)))
			dst[featureCount0+lag] = float32(math.Log1p(float64(count[lag]) / days))
		}
	}
	if recovered > 0 {
		dst[featureRecovered] = float32(math.Log1p(timeWeight * float64(recovered) / daySeconds))
	}
}

// contactsOf are those in k, or all.
func (g *Graph) contactsOf(k *Kept, i int) ([]uint32, []How) {
	if k == nil {
		return g.Contacts(i)
	}
	return k.Contacts(i)
}

// fillOwn writes what a person is and does.
func (g *Graph) fillOwn(dst []float32, i int) {
	age, did := g.Age[i], g.Did[i]
	dst[featureAge] = (float32(age) - 40) / 40
	dst[featureChild] = indicator(age < 18)
	dst[featureOld] = indicator(age >= 65)
	dst[featureSex] = indicator(g.Sex[i] == 2)
	dst[featureHousehold] = logSizes[g.Size[i]]
	dst[featureWorked] = indicator(did&DidWork != 0)
	dst[featureSchooled] = indicator(did&(DidSchool|DidCollege) != 0)
	dst[featureShopped] = indicator(did&DidShop != 0)
	dst[featureHomeOnly] = indicator(did == 0)
	dst[featureOut] = float32(g.Out[i]) * Tick / daySeconds
	dst[featureBias] = 1
}

func indicator(yes bool) float32 {
	if yes {
		return 1
	}
	return 0
}

// Label says whether person i is susceptible throughout the window that ends before day
// end, and whether it then falls ill (is infected or recovered) in the 7 days after it: in
// the known days, or by Target if the window ends with them. Days that are neither are of
// no illness.
func (g *Graph) Label(i, end int) (susceptible, infected bool) {
	ill := g.Infected[i] | g.Recovered[i]
	if windowOf(ill, end) != 0 {
		return false, false
	}
	if end >= g.Days {
		return true, g.Positive(i)
	}
	return true, ill>>uint(end)&(1<<Ahead-1) != 0
}
