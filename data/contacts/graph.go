package contacts

// Graph is a population as training and judging read it. Person i is 0..N-1 in order of pid.
type Graph struct {
	ID        []int64  // pid, as in the files
	Household []uint32 // index of the household, in order of hid
	Size      []uint8  // of the household, as declared in the household table, never recomputed
	Age       []uint8
	Sex       []uint8 // 1 male, 2 female, as in the files
	Region    []uint8 // 0..9, by the boxes of longitude and latitude that RegionAt knows
	// ByStays says that households' residences were taken from where their members stay, so
	// that a whole household's Region can hang on one of them.
	ByStays bool
	Did     []Did    // what the person did on the day
	Out     []uint16 // time away from home, in units of Tick seconds: all visits' durations, at most a day

	// Contacts both ways, compressed sparse rows: contact k of person i is at Offsets[i]+k.
	// A row is sorted by Other, then How (then Start and Where); two persons may meet more
	// than once.
	Offsets []int64 // N+1
	Other   []uint32
	How     []How

	// Scenes of contacts, in the order of Other, where they were asked for; nil otherwise:
	// they double what a contact takes, and the pooled features read none.
	Start  []uint16 // in ticks of the day
	Where  []uint32 // in Places
	Places []Place

	// Days as bits: bit d is day d, and no day that is not known has one. Asymptomatic cases
	// are shown as susceptible.
	Infected, Recovered []uint64
	Days                int      // that are known
	Target              []uint64 // bit set over persons: infected in the 7 days after the known ones; nil: not known
}

// Tick is the unit of durations in a graph, in seconds.
const Tick = 12

const (
	knownDays  = 57 // columns in the authors' code; the thesis says 56
	targetDays = 7
	daySeconds = 86400
)

// Kind is what a person does where it meets another, by the challenge's codes.
type Kind uint8

// The kinds.
const (
	Home Kind = 1 + iota
	Work
	Shopping
	Other
	School
	College
	Religion
)

// String is the kind's name in the files.
func (k Kind) String() string {
	if k < Home || k > Religion {
		return "unknown"
	}
	return [...]string{"home", "work", "shopping", "other", "school", "college", "religion"}[k-1]
}

// Did is what a person did on the day, as bits.
type Did uint8

// The bits.
const (
	DidWork Did = 1 << iota
	DidSchool
	DidShop
	DidOther
	DidCollege
	DidReligion
)

// did is a kind's bit; none of Home.
func (k Kind) did() Did {
	return [...]Did{0, 0, DidWork, DidShop, DidOther, DidSchool, DidCollege, DidReligion}[k]
}

// How is a contact's kind (the upper 3 bits) and duration (13 bits, in ticks, rounded up,
// so never 0).
type How uint16

const durationBits = 13

// longest is the longest duration in seconds that a How holds: more than a day.
const longest = (1<<durationBits - 1) * Tick

func howOf(k Kind, seconds int) How {
	return How(k)<<durationBits | How((seconds+Tick-1)/Tick)
}

// Kind is what the person in whose row the contact stands did there.
func (h How) Kind() Kind { return Kind(h >> durationBits) }

// Seconds is the duration, rounded up to whole ticks.
func (h How) Seconds() int { return int(h&(1<<durationBits-1)) * Tick }

// Persons is how many there are.
func (g *Graph) Persons() int { return len(g.ID) }

// Contacts are person i's: parts of the graph's own slices, which nobody may change.
func (g *Graph) Contacts(i int) ([]uint32, []How) {
	from, to := g.Offsets[i], g.Offsets[i+1]
	return g.Other[from:to:to], g.How[from:to:to]
}

// Positive says whether person i is infected in the days to be foretold; false if that is
// not known.
func (g *Graph) Positive(i int) bool {
	return g.Target != nil && g.Target[i/64]>>(i%64)&1 == 1
}
