// Package event says what was released: mechanism, unit, relation, sampling, steps. Data only.
package event

// Unit is what one guarantee protects.
type Unit string

// Relation says which two datasets count as neighbours.
type Relation string

// Claim says how far a number can be trusted.
type Claim string

// Trust says who adds the noise, and so whom one need not trust.
type Trust string

// Sampling says how a batch is drawn.
type Sampling string

// The units. Budgets of different units are never added or compared.
const (
	UnitExample       Unit = "example"
	UnitClient        Unit = "client"
	UnitNode          Unit = "node"
	UnitNeighbourhood Unit = "neighbourhood" // points of the parameter space within a radius
)

// The neighbour relations.
const (
	AddRemove  Relation = "add-remove"
	ReplaceOne Relation = "replace-one"
	Metric     Relation = "metric"
	// Of a graph's nodes. OwnRecord compares with an empty record of the node: what it
	// reported itself; what others report of it stays theirs. Removal takes the node out of
	// everybody's reports, too.
	OwnRecord Relation = "own-record"
	Removal   Relation = "full-removal"
)

// The claims.
const (
	ClaimProved    Claim = "proved"
	ClaimMetric    Claim = "metric"    // d-private at a public radius
	ClaimHeuristic Claim = "heuristic" // the papers' number; no proof covers it
	ClaimNone      Claim = "none"
)

// Who adds the noise.
const (
	TrustLocal  Trust = "participant adds the noise; the server is not trusted"
	TrustServer Trust = "server adds the noise; the server is trusted"
	TrustHolder Trust = "whoever holds all examples trains and adds the noise, and is trusted; whoever sees the models is not"
	TrustNobody Trust = "nobody adds noise; everyone who sees a release is trusted"
)

// The samplings that accountants know.
const (
	FullBatch          Sampling = "full"
	Poisson            Sampling = "poisson"
	WithoutReplacement Sampling = "without-replacement" // every batch drawn afresh
	Shuffle            Sampling = "shuffle"             // an epoch in random order: no amplification is proved
)

// Release is one release and the terms it was made on.
type Release struct {
	Unit     Unit
	Relation Relation
	Claim    Claim
	Trust    Trust
	What     Event
}

// Event is one of the kinds below; no other package can add one.
type Event interface{ kind() string }

// Gaussian noise of standard deviation Noise*C on a sum whose terms are clipped
// to C. Noise never includes the relation's factor: accountants apply it.
type Gaussian struct {
	Noise float64 `json:"noise"`
}

// Laplace is scalar noise of scale Scale*C on a sum whose terms are clipped to C.
type Laplace struct {
	Scale float64 `json:"scale"`
}

// DiscreteGaussian is scalar integer noise of weight exp(-x^2/(2*Sigma^2)) on a
// sum of integers that are clipped to Bound. Both are in lattice steps.
type DiscreteGaussian struct {
	Sigma float64 `json:"sigma"`
	Bound int64   `json:"bound"`
}

// MetricLaplace is the Laplace mechanism in Dimension dimensions, tuned so that
// points within Radius of each other lose Dimension/NoiseMultiplier: its density
// falls as exp(-Epsilon()*|x|).
type MetricLaplace struct {
	Dimension       int     `json:"dimension"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	Radius          float64 `json:"radius"`
	// Slack is what rounding to the lattice of exact noise adds to the loss.
	Slack float64 `json:"slack,omitempty"`
	// Spread is the largest distance between two points that the noise may have been
	// added around: the hypotheses of the broadcast. Which of them it was is private.
	Spread float64 `json:"spread,omitempty"`
}

// Epsilon is the loss per unit of distance.
func (e MetricLaplace) Epsilon() float64 {
	return float64(e.Dimension) / (e.NoiseMultiplier * e.Radius)
}

// Leak is the loss between two points at distance Radius.
func (e MetricLaplace) Leak() float64 { return float64(e.Dimension) / e.NoiseMultiplier }

// Switch is the loss between any two data sets, whatever they make of the update and
// of the choice of hypothesis: both centres lie within Radius of a hypothesis, and
// these at most Spread apart. Whoever chooses radius and hypotheses cannot make a
// release lose more.
func (e MetricLaplace) Switch() float64 {
	return e.Epsilon()*(2*e.Radius+e.Spread) + e.Slack
}

// Selection is the private choice of one of several candidates.
type Selection struct {
	Mechanism string  `json:"mechanism"` // exponential, permute-and-flip or noisy-max
	Epsilon   float64 `json:"epsilon"`
}

// Sampled applies Of to a batch. Rate serves Poisson; Batch and Examples serve
// the others. Under Shuffle one event is one epoch, in which every example is
// in one batch; under the others it is one batch.
type Sampled struct {
	Sampling Sampling `json:"sampling"`
	Rate     float64  `json:"rate,omitempty"`
	Batch    int64    `json:"batch,omitempty"`
	Examples int64    `json:"examples,omitempty"`
	Of       Event    `json:"of"`
}

// Repeated is Of, Times over.
type Repeated struct {
	Times int64 `json:"times"`
	Of    Event `json:"of"`
}

// Composed is several events on the same data.
type Composed struct {
	Parts []Event `json:"parts"`
}

// MaxOccurrences bounds NodeGaussian.Occurrences: accountants walk over all counts up
// to it, and a stranger's event must not keep them busy for ever.
const MaxOccurrences = 1 << 20

// NodeGaussian is a noised step on a batch of a graph's examples, one node
// being in at most Occurrences of them.
type NodeGaussian struct {
	Nodes       int64   `json:"nodes"`
	Occurrences int64   `json:"occurrences"`
	Batch       int64   `json:"batch"`
	Noise       float64 `json:"noise"`
	Formula     string  `json:"formula"` // theorem or authors-code
}

// NodeSum is Gaussian noise of standard deviation Noise*C on the sum of all examples of a
// graph, each clipped to C, of which at most Examples change when a node goes: its own,
// which goes too, and others that lose it. Noise never includes what that amounts to:
// accountants apply it.
type NodeSum struct {
	Examples int64   `json:"examples"`
	Noise    float64 `json:"noise"`
}

// NodeThinned is Gaussian noise of standard deviation Noise*C on the sum of all examples of
// a graph, each clipped to C, in which every contact was kept with chance Keep, by a secret
// drawn for this release alone, and nothing in the place of what was not. Nobody has more
// than Degree contacts: a promise. So a node is in Binomial(Degree, Keep) others' examples
// at most. Noise never includes what that amounts to: accountants apply it.
type NodeThinned struct {
	Degree int64   `json:"degree"`
	Keep   float64 `json:"keep"`
	Noise  float64 `json:"noise"`
}

// Tuning is the best of a random number of runs of Of.
type Tuning struct {
	Distribution string  `json:"distribution"` // tnb, poisson or naive
	Eta          float64 `json:"eta,omitempty"`
	Gamma        float64 `json:"gamma,omitempty"`
	Mean         float64 `json:"mean,omitempty"`
	Trials       int64   `json:"trials,omitempty"`
	Of           Event   `json:"of"`
}

// Unprotected was sent without noise.
type Unprotected struct{}

func (Gaussian) kind() string         { return "gaussian" }
func (Laplace) kind() string          { return "laplace" }
func (MetricLaplace) kind() string    { return "metric-laplace" }
func (DiscreteGaussian) kind() string { return "discrete-gaussian" }
func (Selection) kind() string        { return "selection" }
func (Sampled) kind() string          { return "sampled" }
func (Repeated) kind() string         { return "repeated" }
func (Composed) kind() string         { return "composed" }
func (NodeGaussian) kind() string     { return "node-gaussian" }
func (NodeSum) kind() string          { return "node-sum" }
func (NodeThinned) kind() string      { return "node-thinned" }
func (Tuning) kind() string           { return "tuning" }
func (Unprotected) kind() string      { return "unprotected" }
