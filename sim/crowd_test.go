package sim

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/account"
	"github.com/coterie-fl/coterie/fl"
)

// crowdRuns are runs that need not hold their clients.
func crowdRuns() map[string]config.Run {
	ceiling := 0.9
	runs := map[string]config.Run{}
	for name, kind := range map[string][2]string{"fedavg": {"fedavg", "paper"}, "ifca": {"ifca", "paper"}, "paper": {"group-private", "paper"}, "sound": {"group-private", "sound"}} {
		run := config.Default("synthetic", kind[0], kind[1])
		run.Data.Users, run.Data.ValidationUsers, run.Data.Shares = 61, 9, []float64{0.7, 0.3}
		run.Algorithm.Rounds, run.Algorithm.ClientsPerRound, run.Algorithm.Stop.Patience = 12, 7, 0
		runs[name] = run
	}
	budget := runs["sound"]
	budget.Algorithm.Sampling, budget.Privacy.Ceiling, budget.Algorithm.Rounds = "balanced", &ceiling, 40
	runs["budget"] = budget
	tested := runs["fedavg"]
	tested.Judge.By, tested.Data.TestShare, tested.Algorithm.Local.Batch = "test", 0.3, 3
	runs["tested"] = tested
	return runs
}

// Whether clients are held changes nothing but the memory.
func TestACrowdTrainsAsThoseWhoAreHeld(t *testing.T) {
	for name, run := range crowdRuns() {
		var all []Result
		for _, hold := range []string{"all", "asked"} {
			run.Run.Hold = hold
			for _, check := range Checks() {
				if faults := check(run); faults != nil {
					t.Fatal(name, faults)
				}
			}
			res := finish(t, run)
			if (res.Crowd != nil) != (hold == "asked") {
				t.Fatalf("%s, hold %s: %+v", name, hold, res.Crowd)
			}
			res.Crowd = nil
			all = append(all, res)
		}
		if a, b := encoded(t, all[0]), encoded(t, all[1]); a != b {
			t.Errorf("%s ends otherwise if clients are not held:\n%s\n%s", name, a, b)
		}
	}
}

// Ten million clients take the memory of those who are asked.
func TestTenMillionClients(t *testing.T) {
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, sampling := range []string{"uniform", "balanced"} {
		run := crowdRuns()["paper"]
		run.Data.Users, run.Algorithm.ClientsPerRound, run.Algorithm.Sampling, run.Algorithm.Rounds = 10_000_000, 1000, sampling, 3
		before := held()
		s, err := New(run, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range run.Algorithm.Rounds {
			if _, err := s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		// 3,000 of 120 bytes, pages of 4,096, and whatever workers need; a number of one byte
		// for every client would be ten.
		if grown := int64(held()) - int64(before); grown > 8<<20 {
			t.Errorf("%s: %d bytes are held after three rounds", sampling, grown)
		}
		res, err := s.Result()
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		clients := 0
		for _, spent := range res.History.Spends {
			clients += spent.Clients
		}
		if res.History.Budgets != nil || len(res.History.Spends) < 2 || clients != run.Data.Users {
			t.Errorf("%s: spends %+v", sampling, res.History.Spends)
		}
		if c := res.Crowd; c.Asked != 3000 && sampling == "balanced" || c.Judged != 10_000 {
			t.Errorf("%s: %+v", sampling, c)
		}
	}
}

func TestWhoMustBeHeld(t *testing.T) {
	for want, change := range map[string]func(r *config.Run){
		"judge.by is own": func(r *config.Run) { r.Judge.By, r.Data.TestShare = "own", 0.2 },
		"everybody has a plan": func(r *config.Run) {
			*r = smallRun("fedavg")
			r.Data = config.Default("synthetic", "fedavg", "paper").Data
		},
		"a model of its own":    func(r *config.Run) { r.Algorithm.Kind = "ditto" },
		"everybody keeps its l": func(r *config.Run) { r.Algorithm.Selection.Rule = "nearest" },
		"are read as a whole":   func(r *config.Run) { r.Data.Kind = "school" },
		"clients lie":           func(r *config.Run) { r.Judge.Hostile = config.Hostile{Attack: "scale", Share: 0.1} },
		"ask everybody":         func(r *config.Run) { r.Judge.Compare = []string{"local"} },
	} {
		run := crowdRuns()["fedavg"]
		change(&run)
		run.Run.Hold = "asked"
		if faults := checkHold(run); len(faults) != 1 || !strings.Contains(faults[0].Message, want) {
			t.Errorf("%s: %v", want, faults)
		}
		run.Run.Hold = ""
		if run.Data.Users = 200_000; holdsAsked(run) {
			t.Errorf("%s: nobody is held", want)
		}
	}
}

// More than 1,000 different totals are rounded up, never down, and nobody is lost.
func TestTotalsAreCounted(t *testing.T) {
	counts := map[float64]int{0: 5}
	for i := range 5000 {
		counts[float64(i+1)/7] += 2
	}
	spends, clients := counted(counts), 0
	for i, s := range spends {
		clients += s.Clients
		if i > 0 && s.Epsilon <= spends[i-1].Epsilon {
			t.Errorf("%v follows %v", s.Epsilon, spends[i-1].Epsilon)
		}
	}
	if len(spends) > mostSpends || clients != 10_005 || spends[0] != (Budget{0, 5}) || float64(spends[len(spends)-1].Epsilon) < 5000.0/7 {
		t.Errorf("%d totals of %d clients, from %v to %v", len(spends), clients, spends[0], spends[len(spends)-1])
	}
}

// A checkpoint has every number of whoever was asked.
func TestWhoWasAskedIsReadBack(t *testing.T) {
	want := asked{
		Client: 9_999_999, Account: account.Metric{Releases: 1, Closed: 2.5, Dimension: 3, Multiplier: 4.5, Same: 5, Distance: 6.5, Slack: 7.5, Bare: 8},
		Switch: 9.5, Cluster: 10, Paid: fl.Paid{Rounds: 11, Choices: 12, Moments: 13}, Fell: -1, Declined: true,
	}
	raw := want.append(nil)
	var got asked
	if got.read(raw); len(raw) != 8*askedWords || got != want {
		t.Errorf("%+v is read as %+v", want, got)
	}
	c := crowd{clients: tenMillion{}}
	if err := c.resume(append(raw, raw...)); err == nil {
		t.Error("a client that is there twice is read")
	}
	if err := c.resume(raw[:20]); err == nil {
		t.Error("a list that is cut is read")
	}
	got.Client++
	if err := c.resume(got.append(nil)); err == nil {
		t.Error("a client that there is not is read")
	}
}

type tenMillion struct{ data.Crowd }

func (tenMillion) Len() int { return 10_000_000 }
