package contacts

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// hubContacts is how many people the village's best-known person meets.
const hubContacts = 800

// village is a small population in which people meet at home, meet neighbours, and meet
// the hub, whom many know. Numbers of persons have gaps.
func village(persons, neighbours int, seed uint64) *Graph {
	random := rand.New(rand.NewPCG(seed, 1))
	g := &Graph{Days: knownDays, Target: make([]uint64, persons/64+1)}
	for i, household := 0, uint32(0); i < persons; household++ {
		size := min(1+random.IntN(5), persons-i)
		for range size {
			g.ID, g.Household, g.Size = append(g.ID, int64(7*i+3)), append(g.Household, household), append(g.Size, uint8(size))
			g.Age, g.Sex = append(g.Age, uint8(random.IntN(95))), append(g.Sex, uint8(1+random.IntN(2)))
			g.Region, g.Did = append(g.Region, uint8(10*i/persons)), append(g.Did, Did(random.IntN(64)))
			g.Out = append(g.Out, uint16(random.IntN(4000)))
			var infected, recovered uint64
			if random.IntN(3) == 0 {
				from := random.IntN(knownDays + 7)
				to := from + 2 + random.IntN(6)
				infected = (1<<to - 1<<from) & (1<<knownDays - 1)
				recovered = -(1 << to) & (1<<knownDays - 1)
				if from >= knownDays {
					g.Target[i/64] |= 1 << (i % 64)
				}
			}
			g.Infected, g.Recovered = append(g.Infected, infected), append(g.Recovered, recovered)
			i++
		}
	}
	rows := make([][]contact, persons)
	meet := func(i, j int, kind, others Kind, seconds int) {
		rows[i] = append(rows[i], contact{uint32(j), howOf(kind, seconds)})
		rows[j] = append(rows[j], contact{uint32(i), howOf(others, seconds)})
	}
	somewhere := func() Kind { return Kind(1 + random.IntN(7)) } // of two who meet one may be at home
	for i := range persons {
		for j := i + 1; j < persons && g.Household[j] == g.Household[i]; j++ {
			meet(i, j, Home, Home, 28800+random.IntN(21600))
		}
		for range neighbours / 2 { // the same two may meet again, and for equally long
			if j := i + 1 + random.IntN(3*neighbours); j < persons {
				meet(i, j, somewhere(), somewhere(), 120*(1+random.IntN(60)))
			}
		}
	}
	hub := persons / 2
	for _, j := range random.Perm(persons)[:min(hubContacts, persons)] {
		if j != hub {
			meet(hub, j, Work, Shopping, 120*(1+random.IntN(60)))
		}
	}
	g.setRows(rows)
	return g
}

// contact is one of a person's.
type contact struct {
	other uint32
	how   How
}

func byContact(a, b contact) int {
	return cmp.Or(cmp.Compare(a.other, b.other), cmp.Compare(a.how, b.how))
}

// setRows gives people their contacts.
func (g *Graph) setRows(rows [][]contact) {
	g.Offsets, g.Other, g.How = []int64{0}, nil, nil
	for _, row := range rows {
		slices.SortFunc(row, byContact)
		for _, c := range row {
			g.Other, g.How = append(g.Other, c.other), append(g.How, c.how)
		}
		g.Offsets = append(g.Offsets, int64(len(g.Other)))
	}
}

// rows are everybody's contacts.
func (g *Graph) rows() [][]contact {
	rows := make([][]contact, g.Persons())
	for i := range rows {
		others, hows := g.Contacts(i)
		for at, j := range others {
			rows[i] = append(rows[i], contact{j, hows[at]})
		}
	}
	return rows
}

// emptied is the graph without person j's record: who it is, its history and its report.
// What others report stays.
func (g *Graph) emptied(j int) *Graph {
	other := *g
	other.Age, other.Sex, other.Size = slices.Clone(g.Age), slices.Clone(g.Sex), slices.Clone(g.Size)
	other.Did, other.Out = slices.Clone(g.Did), slices.Clone(g.Out)
	other.Infected, other.Recovered = slices.Clone(g.Infected), slices.Clone(g.Recovered)
	other.Age[j], other.Sex[j], other.Size[j], other.Did[j], other.Out[j], other.Infected[j], other.Recovered[j] = 0, 0, 0, 0, 0, 0, 0
	rows := g.rows()
	rows[j] = nil
	other.setRows(rows)
	return &other
}

// removed is the graph without person j: no table has it any more, so that people after it
// move up in memory. Households stay as large as declared.
func (g *Graph) removed(j int) *Graph {
	other := &Graph{
		ID: without(g.ID, j), Household: without(g.Household, j), Size: without(g.Size, j), Age: without(g.Age, j),
		Sex: without(g.Sex, j), Region: without(g.Region, j), Did: without(g.Did, j), Out: without(g.Out, j),
		Infected: without(g.Infected, j), Recovered: without(g.Recovered, j), Days: g.Days,
	}
	rows := without(g.rows(), j)
	for i, row := range rows {
		rows[i] = slices.DeleteFunc(row, func(c contact) bool { return int(c.other) == j })
		for at := range rows[i] {
			if int(rows[i][at].other) > j {
				rows[i][at].other--
			}
		}
	}
	other.setRows(rows)
	return other
}

func without[E any](of []E, j int) []E { return slices.Delete(slices.Clone(of), j, j+1) }

// TestVillage: there is somebody whom hundreds meet, and there are pairs that meet more
// than once.
func TestVillage(t *testing.T) {
	g := village(1000, 10, 1)
	most, again := int64(0), 0
	for i, row := range g.rows() {
		most = max(most, g.Offsets[i+1]-g.Offsets[i])
		for at := 1; at < len(row); at++ {
			if row[at].other == row[at-1].other {
				again++
			}
		}
	}
	if most < hubContacts || again < 100 {
		t.Errorf("the most contacts of a person are %d, and %d pairs meet again", most, again)
	}
}
