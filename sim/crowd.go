package sim

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/fl"
)

// heldClients is up to how many clients that are drawn are held all at once, unless
// run.hold says so.
const heldClients = 100_000

// listed is up to how many clients are judged and listed one by one. Of more, figures of
// clients that train are those of so many, drawn by the seed.
const listed = 10_000

// checkHold says why clients must be held, where the run file wants them not to be.
func checkHold(run config.Run) config.Faults {
	var c config.Checker
	if run.Run.Hold == "asked" {
		why := whyHeld(run)
		c.Require(why == "", "run.hold", "is asked, but %s; allowed: all", why)
	}
	return c.Faults()
}

// holdsAsked says that the run keeps nothing of clients that were never asked.
func holdsAsked(run config.Run) bool {
	k, err := data.KindOf(run.Data)
	if err != nil || run.Run.Hold == "all" || whyHeld(run) != "" {
		return false
	}
	if run.Run.Hold == "" {
		if k.Clients == nil {
			return false
		}
		train, _ := k.Clients(run.Data)
		return train > heldClients
	}
	return true
}

// whyHeld is why all clients of a run must be held; empty: they need not be.
func whyHeld(run config.Run) string {
	k, err := data.KindOf(run.Data)
	if err != nil {
		return err.Error()
	}
	outline, err := fl.OutlineOf(run)
	if err != nil {
		return err.Error()
	}
	d, p := run.Data, run.Privacy.Protects
	switch {
	case k.Crowd == nil:
		return "data of the kind " + k.Name + " are read as a whole"
	case p != "update" && p != "nothing":
		return fmt.Sprintf("under privacy.protects %s everybody has a plan of its own (update and nothing have none)", p)
	case fl.IsCentral(run.Algorithm.Kind) || outline.Personal || outline.Moments > 0:
		return fmt.Sprintf("under %s everybody is asked, or has a model of its own", run.Algorithm.Kind)
	case run.Judge.By == "own":
		return "judge.by is own, which asks everybody: set it to clients or test"
	case len(run.Judge.Compare) > 0 || run.Judge.Evaluate.Epsilon > 0:
		return "judge.compare and judge.evaluate ask everybody"
	case run.Judge.Hostile != (config.Hostile{}):
		return "judge.hostile has clients lie from the first round on"
	case run.Algorithm.Selection.Rule == "nearest":
		return "with algorithm.selection.rule nearest everybody keeps its last release"
	case d.Standardise == string(data.ByPaid):
		return "with data.standardise paid everybody keeps constants of its own"
	case d.Test != (config.TestPart{}) || len(d.Sensitive) > 0 || d.TrainLimit > 0:
		return "data.test, data.sensitive or data.train_limit is set"
	}
	return ""
}

// crowd is participants of whom only those who were asked are kept, and of them no more
// than what they need in their next round.
type crowd struct {
	clients   data.Crowd
	algorithm *fl.Algorithm
	uncovered []string
	purse     fl.Purse // everybody's; nil: the account is enough
	seats     []seat   // by worker
	mu        sync.Mutex
	plans     map[int]fl.Plan // by number of examples: nothing else enters

	place map[int]int // in the pages, by client
	pages [][]asked
	size  int
}

// asked is what is kept of a participant.
type asked struct {
	Client   int
	Account  account.Metric
	Switch   float64
	Cluster  int
	Paid     fl.Paid
	Fell     int // cluster of its last release; -1: there is none
	Declined bool
}

// seat is the participant that a worker has at the moment.
type seat struct {
	client data.Client
	fl.Participant
	_ [128]byte // the next worker's fields lie on other cache lines
}

// pageSize is how many are kept together: pages are never copied, as one growing list
// would be.
const pageSize = 4096

func newCrowd(f *data.Federation, a *fl.Algorithm) *crowd {
	return &crowd{clients: f.Crowd, algorithm: a, uncovered: f.NotCovered, plans: map[int]fl.Plan{}, place: map[int]int{}}
}

// newCrowdRounds is NewRounds for participants who prepare when they are asked.
func newCrowdRounds(c *crowd, most, workers int, stop *atomic.Bool) *Rounds {
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	r := newRounds(c.algorithm, workers, max(most, min(listed, c.clients.Len())), stop)
	r.crowd, c.seats = c, make([]seat, workers)
	r.work = 10_000 // to be drawn or read is work, too
	return r
}

// at is what is kept at a place.
func (c *crowd) at(place int) *asked { return &c.pages[place/pageSize][place%pageSize] }

// of is what is kept of a client that was asked.
func (c *crowd) of(client int) *asked { return c.at(c.place[client]) }

// admit makes room for clients, before workers look for them.
func (c *crowd) admit(clients []int) {
	for _, client := range clients {
		if _, there := c.place[client]; !there {
			c.add(asked{Client: client, Fell: -1})
		}
	}
}

func (c *crowd) add(a asked) {
	if c.size%pageSize == 0 {
		c.pages = append(c.pages, make([]asked, pageSize))
	}
	c.place[a.Client] = c.size
	*c.at(c.size) = a
	c.size++
}

// all are those who were asked, in the order of their first time.
func (c *crowd) all(each func(a *asked)) {
	for i := range c.size {
		each(c.at(i))
	}
}

// enter has a client take a worker's seat, with what it keeps.
func (c *crowd) enter(worker, client int) (*fl.Participant, error) {
	s := &c.seats[worker]
	if err := c.clients.Read(&s.client, client); err != nil {
		return nil, err
	}
	kept := c.of(client)
	s.Participant = fl.Participant{
		ID: client, Data: &s.client, Name: s.client.Name, Uncovered: c.uncovered, Purse: c.purse,
		Account: kept.Account, Switch: kept.Switch, Kept: fl.Kept{Cluster: kept.Cluster, Paid: kept.Paid},
	}
	var known bool
	c.mu.Lock()
	s.Plan, known = c.plans[s.client.Len()]
	c.mu.Unlock()
	if known {
		return &s.Participant, nil
	}
	if err := c.algorithm.Prepare(&s.Participant); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.plans[s.client.Len()] = s.Plan
	c.mu.Unlock()
	return &s.Participant, nil
}

// leave keeps what the client needs next time.
func (c *crowd) leave(p *fl.Participant) error {
	if p.Personal != nil || p.Last != nil || p.Scaling != nil || p.Evaluated != nil || p.Training.First != nil || p.Training.Second != nil || p.Training.Moves != 0 {
		return fmt.Errorf("participant %d keeps more than run.hold asked has room for: set run.hold to all", p.ID)
	}
	kept := c.of(p.ID)
	kept.Account, kept.Switch, kept.Cluster, kept.Paid = p.Account, p.Switch, p.Cluster, p.Paid
	return nil
}

// anyoneLeft says whether somebody may still make a release: who was never asked may, for
// the run began.
func (c *crowd) anyoneLeft(next event.MetricLaplace, ceiling float64) bool {
	left := c.size < c.clients.Len()
	c.all(func(a *asked) { left = left || !a.Declined && a.Account.Allows(next, ceiling) })
	return left
}

// spends are the totals of all clients in short: median, maximum, and the largest loss by a
// change of choice. Who was never asked has spent nothing.
func (c *crowd) spends() (median, most, worst float64) {
	totals := make([]float64, 0, c.size)
	c.all(func(a *asked) {
		totals = append(totals, a.Account.Epsilon())
		worst = max(worst, a.Switch)
	})
	slices.Sort(totals)
	k := c.clients.Len()
	never := k - len(totals)
	total := func(rank int) float64 {
		if rank < never {
			return 0
		}
		return totals[rank-never]
	}
	median = total(k / 2)
	if k%2 == 0 && total(k/2-1) != median {
		median = (total(k/2-1) + median) / 2
	}
	return median, total(k - 1), worst
}
