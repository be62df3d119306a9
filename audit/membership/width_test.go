package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/data"
)

// parts are a run's members and what it held out, by client, as somebody has them who was
// told: files of both.
func parts(t *testing.T, target Target, folder *data.Folder) (members, others []data.Client) {
	t.Helper()
	f, err := folder.Load(target.Run.Data, target.Run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Train {
		held := *c.Held
		held.Name, c.Held = c.Name, nil
		members, others = append(members, c), append(others, held)
	}
	return members, others
}

// sameScores says whether two findings have the same AUC by the loss, of as many.
func sameScores(t *testing.T, got, want Found) {
	t.Helper()
	g, w := named(got, Loss), named(want, Loss)
	if got.Members != want.Members || got.NonMembers != want.NonMembers || g.AUC.Value != w.AUC.Value {
		t.Errorf("%d and %d with AUC %v, want %d and %d with %v", got.Members, got.NonMembers, g.AUC.Value, want.Members, want.NonMembers, w.AUC.Value)
	}
}

// TestOneClientOfACentralRun: its examples among everybody's are attacked by the one model;
// all clients together are the whole.
func TestOneClientOfACentralRun(t *testing.T) {
	folder := pupils(t, 3, 60)
	target := trained(t, byHeart, folder)
	o := options(t)
	o.Neighbours = 0
	whole := measured(t, target, folder, o)
	var members, others int
	var scores Scores
	for _, client := range []string{"school 0", "school 1", "school 2"} {
		o.Client = client
		f := measured(t, target, folder, o)
		if f.Members+f.NonMembers != 60 {
			t.Errorf("%s: %d members and %d others of 60 pupils", client, f.Members, f.NonMembers)
		}
		members, others = members+f.Members, others+f.NonMembers
		s := named(f, Loss).Scores
		scores.Members, scores.Others = append(scores.Members, s.Members...), append(scores.Others, s.Others...)
	}
	all := named(whole, Loss).Scores
	for _, pair := range [][2][]float64{{scores.Members, all.Members}, {scores.Others, all.Others}} {
		slices.Sort(pair[0])
		slices.Sort(pair[1])
		if !slices.Equal(pair[0], pair[1]) {
			t.Error("the clients' scores are not those of the whole")
		}
	}
	o.Client, o.References = "school 1", 2
	if f := measured(t, target, folder, o); named(f, References).Members != f.Members || named(f, References).AUC.Value < 0.6 {
		t.Errorf("AUC %v by references", named(f, References).AUC.Value)
	}
	o.Client = "nobody"
	if _, err := Measure(context.Background(), target, folder, o); !errors.Is(err, ErrNotThere) || !strings.Contains(err.Error(), "school 0, school 1, school 2") {
		t.Errorf("a client that is not there: %v", err)
	}
}

// TestFolderLikeItsRun: a folder of models, with what was trained on and held out named by
// hand, gives the run's own figures: of central models, and of every silo's own.
func TestFolderLikeItsRun(t *testing.T) {
	folder := pupils(t, 3, 60)
	for _, method := range []string{"central", "local"} {
		target := trained(t, strings.Replace(byHeart, "kind: central", "kind: "+method, 1), folder)
		members, others := parts(t, target, folder)
		slices.Reverse(others) // clients go by their names, not by their places
		o := options(t)
		o.Neighbours = 0
		sameScores(t, measured(t, OfFolder(target.Models, members, others), nil, o), measured(t, target, folder, o))
	}
}

// TestWhatIsNamedByHand: what cannot be told apart, or trained, is refused with what to do.
func TestWhatIsNamedByHand(t *testing.T) {
	folder := pupils(t, 3, 60)
	target := trained(t, byHeart, folder)
	members, others := parts(t, target, folder)
	for name, c := range map[string]struct {
		members, others []data.Client
		change          func(o *Options)
		say             string
	}{
		"the same twice":  {members, members, func(*Options) {}, "is a member, too"},
		"nothing":         {members, []data.Client{}, func(*Options) {}, "no non-members"},
		"other models":    {members, others, func(o *Options) { o.References = 1 }, "--references"},
		"a client twice":  {members, others, func(o *Options) { o.Unit = UnitClient }, `"school 0" is among those`},
		"client and unit": {members[:1], others[1:], func(o *Options) { o.Unit, o.Client = UnitClient, "school 0" }, "--unit client asks who took part"},
	} {
		o := options(t)
		c.change(&o)
		if _, err := Measure(context.Background(), OfFolder(target.Models, c.members, c.others), nil, o); !errors.Is(err, ErrNotThere) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStrangers: whether clients took part, told by the examples of others that are named
// by hand: of a central run, which pools its clients, and of silos, with references that
// draw clients anew, and with a silo's own model.
func TestStrangers(t *testing.T) {
	folder := pupils(t, 3, 80)
	strangers, err := pupilsSeeded(t, 5, 3, 80).Load(trained(t, byHeart, folder).Run.Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	var others []data.Client
	for _, c := range strangers.Train {
		c.Name, c.Held = "stranger "+c.Name, nil
		others = append(others, c)
	}
	for _, method := range []string{"central", "fedavg", "local"} {
		target := trained(t, strings.Replace(byHeart, "kind: central", "kind: "+method, 1), folder)
		target.Others = others
		o := options(t)
		o.Neighbours, o.References, o.Unit = 0, 2, UnitClient
		f := measured(t, target, folder, o)
		if f.Members != 3 || f.NonMembers != 3 || len(f.Attacks) != 2 {
			t.Errorf("%s: %d members and %d others, %d attacks", method, f.Members, f.NonMembers, len(f.Attacks))
		}
		o = options(t)
		o.Neighbours, o.Client = 0, "school 1"
		f = measured(t, target, folder, o)
		if loss := named(f, Loss).AUC.Value; f.NonMembers < 100 || loss < 0.55 {
			t.Errorf("%s: AUC %v of %d strangers' pupils", method, loss, f.NonMembers)
		}
		if told := slices.ContainsFunc(f.Says, func(s string) bool { return strings.Contains(s, "a newcomer gets") }); told {
			t.Errorf("%s: a client's own model was attacked, and it says %q", method, f.Says)
		}
	}
}

// TestNewcomersModelIsTold: everybody's examples that are attacked by a model which is not
// their own.
func TestNewcomersModelIsTold(t *testing.T) {
	folder := pupils(t, 3, 60)
	target := trained(t, strings.Replace(byHeart, "kind: central", "kind: local", 1), folder)
	members, others := parts(t, target, folder)
	o := options(t)
	o.Neighbours = 0
	f := measured(t, OfFolder(target.Models, members[:2], others[2:]), nil, o)
	if !slices.ContainsFunc(f.Says, func(s string) bool { return strings.Contains(s, "a newcomer gets") }) || named(f, Loss).Members != members[0].Len()+members[1].Len() {
		t.Errorf("%d members; says %q", f.Members, f.Says)
	}
	if c, err := target.Models.Choose(""); err != nil || c.Role != artifact.RoleMean {
		t.Errorf("a newcomer gets %v (%v)", c.Role, err)
	}
}

// TestInputsAreScaledAsInTraining: where clients paid for constants, their examples reach
// the model scaled by their own.
func TestInputsAreScaledAsInTraining(t *testing.T) {
	folder := pupils(t, 3, 60)
	target := trained(t, `name: paid
data: {kind: school, test_share: 0.5, standardise: paid}
model: {kind: linear, intercept: true}
algorithm: {kind: mr-mtl, mode: sound, rounds: 2, local: {batch: 10}}
privacy: {epsilon: 50, public_size: 30}
`, folder)
	f, err := folder.Load(target.Run.Data, target.Run.Seed)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPopulation(target.Run, f, false, UnitExample, "school 1")
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEye(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	sights, err := e.sights(target.Models)
	if err != nil {
		t.Fatal(err)
	}
	c, err := target.Models.Choose("school 1")
	if err != nil {
		t.Fatal(err)
	}
	centre, scale := c.Scaled()
	if len(sights) != 1 || scale == nil {
		t.Fatalf("%d subjects, scale %v", len(sights), scale)
	}
	if got, want := sights[0].examples.X[3], (f.Train[1].X[3]-centre[3])/scale[3]; got != want {
		t.Errorf("an input is %v, want %v", got, want)
	}
}
