package method

import (
	"fmt"
	"math"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/model"
)

func init() {
	fl.RegisterMethod(fl.MethodKind{
		Name: "pca", Words: "principal components of everybody's examples together", Common: fl.CommonGlobal,
		Keys: append([]string{"algorithm.components", "algorithm.stop.validation_clients"}, askedKeys...), Settings: oneSum,
		Check: checkPCA,
		New:   newPCA,
	})
	fl.RegisterMethod(fl.MethodKind{
		Name: "pca-local", Words: "principal components of everybody's examples alone, nothing is sent", Common: fl.CommonNothing,
		Keys: append([]string{"algorithm.components"}, askedKeys...), Settings: func(run *config.Run) {
			oneSum(run)
			personal(run)
		},
		Check: func(c *config.Checker, run config.Run) {
			checkPCA(c, run)
			c.Require(run.Judge.By == "own", "judge.by", "is %q, but pca-local finds no common projection that others could use; allowed: own", run.Judge.By)
		},
		New: func(s fl.Setup) (fl.Method, error) {
			m, err := newPCA(s)
			if err != nil {
				return nil, err
			}
			return &localComponents{components: *m.(*components)}, nil
		},
	})
}

// oneSum are the settings of a method that makes one release and no steps.
func oneSum(run *config.Run) {
	run.Model = config.Model{Kind: "projection"}
	a := &run.Algorithm
	a.Mode, run.Privacy.Accounting = "sound", "sound"
	a.Rounds, a.ClientsPerRound, a.Hypotheses, a.Weights = 1, 0, 1, "equal"
	a.Stop = config.Stop{Return: "last", Every: 1}
	run.Privacy.PublicSize = 0
	if run.Data.Standardise == string(data.BySilo) { // which nothing would cover
		run.Data.Standardise = string(data.Unscaled)
		if centre, _ := data.PublicRange(run.Data); len(centre) > 0 {
			run.Data.Standardise = string(data.ByPublic)
		}
	}
}

func checkPCA(c *config.Checker, run config.Run) {
	a := run.Algorithm
	checkOneModel(c, run)
	c.Require(a.Rounds == 1, "algorithm.rounds", "is %d, but %s makes one release; allowed: 1", a.Rounds, a.Kind)
	c.Require(a.Weights == "equal", "algorithm.weights", "is %q, but sums over examples weigh them all the same; allowed: equal", a.Weights)
	c.Require(a.Local.Limit == 0, "algorithm.local.limit", "is %d, but %s sums over all examples; allowed: 0", a.Local.Limit, a.Kind)
	c.Require(a.Stop.Return == "last" && a.Stop.Patience == 0, "algorithm.stop", "chooses among rounds, but %s makes one; allowed: return last, patience 0", a.Kind)
	c.Require(run.Judge.Evaluate == (config.Evaluate{}), "judge.evaluate", "asks how well answers fit, but a projection gives none; allowed: none")
	if shape, whole := data.ShapeOf(run.Data); whole {
		m, err := model.NewProjection(shape, a.Components)
		c.Require(err != nil || m.Features <= mech.MostMomentFeatures, "data", "have %d features, too many for a matrix of all pairs; allowed: %d", m.Features, mech.MostMomentFeatures)
	}
}

// components is private principal component analysis (paper 001, section 1.4, with
// DESIGN's erratum 18): participants release their sum of second moments once, the server
// adds the sums up, and what the directions of the largest eigenvalues are follows from
// that.
type components struct {
	fl.Setup
	projection model.Projection
}

func newPCA(s fl.Setup) (fl.Method, error) {
	m := &components{Setup: s, projection: model.Projection{Features: 1, Components: 1}}
	if s.Model == nil { // to outline it
		return m, nil
	}
	p, ok := s.Model.(model.Projection)
	switch {
	case !ok:
		return nil, fmt.Errorf("algorithm.kind %s finds a projection; model.kind is %q", s.Run.Algorithm.Kind, s.Run.Model.Kind)
	case p.Features > mech.MostMomentFeatures:
		return nil, fmt.Errorf("the data have %d features, too many for a matrix of all pairs; allowed: %d", p.Features, mech.MostMomentFeatures)
	}
	m.projection = p
	return m, nil
}

// Outline has one release of second moments.
func (m *components) Outline() fl.Outline {
	return fl.Outline{Models: 1, Passes: 1, Sends: 1, Moments: m.projection.Features}
}

// Begin starts from the features themselves.
func (m *components) Begin(st *fl.State) {
	st.Hypotheses, st.Idle = make([]float64, m.projection.Parameters()), make([]int, 1)
	m.projection.Initialise(st.Hypotheses, nil)
}

// Tell adds nothing.
func (m *components) Tell(*fl.State, *fl.Broadcast) {}

// Respond releases the participant's sum. What the server sent says nothing.
func (m *components) Respond(g fl.Guard, _ *fl.Worker, b *fl.Broadcast, p *fl.Participant, out []float64) (bool, error) {
	s, ok := g.(fl.Summer)
	if !ok {
		return false, fmt.Errorf("privacy.protects %s releases no sums of second moments", m.Run.Privacy.Protects)
	}
	return s.SecondMoments(b, p, out)
}

// Aggregate adds the sums up and takes their leading directions.
func (m *components) Aggregate(st *fl.State, r fl.Releases) (out fl.Outcome) {
	if len(r.Clients) == 0 { // everybody declined: nothing was learned
		return out
	}
	length := mech.TriangleLength(m.projection.Features)
	sum := make([]float64, length)
	for i := range r.Clients {
		for j, v := range r.Vectors[i*length : (i+1)*length] {
			sum[j] += v
		}
	}
	out.Assigned = make([]int, len(r.Clients))
	if err := Components(st.Hypotheses, sum, m.projection); err != nil {
		out.Err = fmt.Errorf("round %d: %w", st.Round, err)
	}
	return out
}

// Adopt is the server's projection.
func (m *components) Adopt(dst []float64, b *fl.Broadcast, p *fl.Participant, _ model.Learner) {
	if len(b.Hypotheses) == len(dst) {
		copy(dst, b.Hypotheses)
	} else {
		copy(dst, p.Personal)
	}
}

// localComponents is everybody alone.
type localComponents struct {
	components
}

func (m *localComponents) Outline() fl.Outline {
	o := m.components.Outline()
	o.Personal, o.Sends = true, 0
	return o
}

// Respond makes a projection of the participant's own, of a sum that was paid for and
// stays where it is.
func (m *localComponents) Respond(g fl.Guard, w *fl.Worker, b *fl.Broadcast, p *fl.Participant, _ []float64) (bool, error) {
	sum := make([]float64, mech.TriangleLength(m.projection.Features))
	released, err := m.components.Respond(g, w, b, p, sum)
	if err != nil || !released {
		return false, err
	}
	return true, Components(p.Personal, sum, m.projection)
}

// Aggregate has nothing to add up.
func (m *localComponents) Aggregate(*fl.State, fl.Releases) fl.Outcome { return fl.Outcome{} }

// Adopt is the participant's own.
func (m *localComponents) Adopt(dst []float64, _ *fl.Broadcast, p *fl.Participant, _ model.Learner) {
	copy(dst, p.Personal)
}

// Components sets theta to the projection on the leading directions of a sum of second
// moments, a triangle as mech.MomentSum releases it. It reads nothing else, so that it costs
// no privacy. Noise can make eigenvalues negative: those are shown as 0. Every direction's
// largest part is positive, so that the same sum gives the same signs.
func Components(theta, triangle []float64, p model.Projection) error {
	d := p.Features
	whole := make([]float64, d*d)
	if err := mech.Mirror(whole, triangle, d); err != nil {
		return err
	}
	if _, err := mech.Norm(whole); err != nil {
		return fmt.Errorf("the sum of second moments is not finite: %w", err)
	}
	values, vectors, err := leading(whole, d, p.Components)
	if err != nil {
		return fmt.Errorf("the sum of second moments: %w", err)
	}
	copy(p.Directions(theta), vectors)
	for k, value := range values {
		p.Eigenvalues(theta)[k] = max(0, value)
		direction := p.Directions(theta)[k*d : (k+1)*d]
		largest := 0.0
		for _, v := range direction {
			if math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		if largest < 0 {
			for j := range direction {
				direction[j] = -direction[j]
			}
		}
	}
	return nil
}
