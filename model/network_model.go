package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
)

// network is a network with its loss: of pictures (float32) or rows (float64), with
// classes or values.
type network[F Float] struct {
	*Network[F]
	layers   []Layer
	loss     Loss
	emphasis Emphasis
	classes  int // 0: values
	// reconstructs says that the examples themselves are what the outputs are compared with.
	reconstructs bool
	vocabulary   int // examples are so many words' numbers, and the next word is what outputs are compared with; 0: not
	pictures     bool
	people       bool        // inputs are built of persons and their contacts when they are read
	start        []float64   // that training starts from; nil: it is drawn
	stopped      func() bool // nil: nobody stops it
	runner       Runner      // of one learner's chunks; nil: it is alone
	device       Device      // that computes; nil: this processor does
}

// Initialise draws parameters as PyTorch does by default, unless training starts from a
// file.
func (m *network[F]) Initialise(theta []float64, src rand.Source) {
	if m.start != nil {
		copy(theta, m.start)
		return
	}
	own := make([]F, len(theta))
	m.Network.Initialise(own, src)
	toDouble(theta, own)
}

// toDouble copies values into double precision.
func toDouble[F Float](dst []float64, src []F) {
	if double, is := any(src).([]float64); is {
		copy(dst, double)
		return
	}
	for i, v := range src {
		dst[i] = float64(v)
	}
}

// fromDouble copies values from double precision.
func fromDouble[F Float](dst []F, src []float64) {
	switch dst := any(dst).(type) {
	case []float64:
		copy(dst, src)
	case []float32:
		kernel.Narrow(dst[:len(src)], src)
	}
}

// keptChunkValues is how many activations a chunk of pictures may have where their own
// gradients are kept until they are clipped: with these, a quarter of what an engine
// allows fills a core's cache. But a chunk that has fewer activations than the network
// has parameters spends its time on reading and writing their sum.
const keptChunkValues = chunkValues / 4

// Learner has a network of its own: layers keep what they derive from the
// parameters, and every worker trains other ones.
func (m *network[F]) Learner() (Learner, error) {
	net, err := Build[F](m.Input(), m.layers)
	if err != nil {
		return nil, err
	}
	l := &networkLearner[F]{network: m}
	if m.vocabulary > 0 {
		l.trained = newNextWord[F](m.Input().Len(), m.vocabulary)
		l.judged = l.trained
	} else if l.trained, l.judged, err = objectives[F](m.loss, m.emphasis, m.classes, net.Output().Len()); err != nil {
		return nil, err
	}
	if l.engine, err = NewEngine(net, l.trained, m.runner); err != nil {
		return nil, err
	}
	l.engine.stopped = m.stopped
	l.chunk = l.engine.chunk
	l.kept = l.chunk
	for values := net.chain.values(); m.pictures && l.kept > 4 && l.kept*values > max(keptChunkValues, 2*m.Parameters()-1); {
		l.kept /= 2
	}
	for i := range l.grey {
		l.grey[i] = F(i) / 255
	}
	l.theta = make([]F, m.Parameters())
	return l, nil
}

// objectives are what a network with so many outputs is trained and judged by. Classes
// are judged by their cross entropy wherever there is an output for each, whatever is
// trained, and of one output by what is trained, without weights; values by their squared
// error.
func objectives[F Float](loss Loss, e Emphasis, classes, outputs int) (trained, judged Objective[F], err error) {
	name := loss.String()
	if (loss == CrossEntropy || loss == Focal) && outputs == 1 {
		name = "binary-cross-entropy"
	} else if loss == Focal {
		name = "cross-entropy"
	}
	plain, err := NewObjective[F](name)
	if err != nil {
		return nil, nil, err
	}
	if trained = plain; loss == Focal {
		trained = focal[F]{plain, e}
	}
	if e.Weights != nil {
		trained = weighted[F]{trained, e}
	}
	switch {
	case classes > 0 && outputs > 1:
		return trained, crossEntropy[F]{}, nil
	case loss.OfClasses():
		return trained, plain, nil
	}
	return trained, squaredError[F]{}, nil
}

// networkLearner trains and judges on one client's examples.
type networkLearner[F Float] struct {
	*network[F]
	engine          *Engine[F]
	trained, judged Objective[F]
	chunk, kept     int // examples of a chunk; of one whose examples' gradients are kept
	sum             stepSum[F]
	theta           []F
	gradient        []F // nil before the first that is asked for
	ex              Examples[F]
	rows, every     []int
	outputs         []F
	losses          []float64
	vector          []float64
	part            [partLength]float64
	grey            [256]F // of every byte
	person          []float32
	places          []int     // of a batch's examples among the pictures
	one             []F       // example, that may not be readable
	read            []int     // of a batch's examples, those that are
	weights         []float32 // of their gradients
	noise           []float32 // on the words of a block of texts
	_               [128]byte
}

// lay puts some of c's examples one after another, with what an objective compares
// them with, and readies the engine for it.
func (l *networkLearner[F]) lay(theta []float64, c *data.Client, batch []int, o Objective[F]) error {
	if len(theta) != len(l.theta) {
		return fmt.Errorf("%d parameters for a network of %d", len(theta), len(l.theta))
	}
	if err := l.fitting(c); err != nil {
		return err
	}
	l.engine.objective, l.engine.chunk = o, l.kept
	fromDouble(l.theta, theta)
	size, all := l.Input().Len(), c.Len()
	if cap(l.ex.X) < len(batch)*size {
		l.ex.X = nil
		l.ex.X = make([]F, (len(batch)+len(batch)/8)*size) // batches of random sizes are seldom larger
	}
	l.ex.X, l.ex.Labels, l.ex.Targets = l.ex.X[:len(batch)*size], l.ex.Labels[:0], l.ex.Targets[:0]
	l.rows = identity(&l.every, len(batch))
	for k, i := range batch {
		if i < 0 || i >= all {
			return fmt.Errorf("example %d of %d", i, all)
		}
		target := l.put(l.ex.X[k*size:(k+1)*size], c, i)
		if l.ownTargets() {
			continue
		}
		if l.classes == 0 {
			l.ex.Targets = append(l.ex.Targets, F(target))
			continue
		}
		label := int(target)
		if float64(label) != target {
			return fmt.Errorf("example %d has the class %v; allowed: whole numbers from 0 to %d", i, target, l.classes-1)
		}
		l.ex.Labels = append(l.ex.Labels, label)
		if !o.labelled() {
			l.ex.Targets = targetsOf(l.ex.Targets, l.classes, l.Output().Len(), label, 0)
		}
	}
	if l.ownTargets() {
		l.ex.Targets = l.ex.X
	}
	return nil
}

// ownTargets says that what an example's outputs are compared with is the example.
func (m *network[F]) ownTargets() bool { return m.reconstructs || m.vocabulary > 0 }

// fitting refuses a client whose examples are not such as the network takes.
func (l *networkLearner[F]) fitting(c *data.Client) error {
	size := l.Input().Len()
	switch {
	case l.people && c.People == nil:
		return fmt.Errorf("the network needs people, the client has none")
	case l.people && c.People.Inputs() != size+1:
		return fmt.Errorf("%d inputs of people, without the constant, for a network that takes %d", c.People.Inputs()-1, size)
	case l.people:
	case l.pictures && c.Images == nil:
		return fmt.Errorf("the network needs pictures, the client has rows")
	case !l.pictures && c.Images != nil:
		return fmt.Errorf("the network needs rows, the client has pictures")
	case l.pictures && l.classes == 0 && !l.reconstructs && c.Images.Targets == nil && c.Len() > 0:
		return fmt.Errorf("the network needs pictures with values, the client's have classes")
	case l.pictures && c.Images.Height*c.Images.Width*max(1, c.Images.Channels) != size:
		return fmt.Errorf("pictures of %dx%dx%d for a network that takes %v", c.Images.Height, c.Images.Width, max(1, c.Images.Channels), l.Input())
	case !l.pictures && len(c.X) != len(c.Y)*size:
		return fmt.Errorf("%d values are not %d rows of %d features", len(c.X), len(c.Y), size)
	}
	return nil
}

// put sets x to one of c's examples and returns its target; 0 where that is x itself.
func (l *networkLearner[F]) put(x []F, c *data.Client, i int) (target float64) {
	if l.people {
		return l.putPerson(x, c, i)
	}
	if !l.pictures {
		fromDouble(x, c.X[i*len(x):(i+1)*len(x)])
		return c.Y[i]
	}
	at := c.Index[i]
	for j, b := range c.Images.Pixels[at*len(x) : (at+1)*len(x)] {
		x[j] = l.grey[b]
	}
	switch {
	case l.reconstructs:
		return 0
	case l.classes > 0:
		return float64(c.Images.Labels[at])
	}
	return c.Images.Targets[at]
}

// Loss is the mean loss of classes and words, the root mean squared error of values.
func (l *networkLearner[F]) Loss(theta []float64, c *data.Client) (float64, error) {
	loss, _, err := l.Judge(theta, c)
	if !l.judged.labelled() && l.vocabulary == 0 {
		loss = math.Sqrt(loss)
	}
	return loss, err
}

// blockSize is how many examples are laid out at a time to be judged, blockOutputs how many
// outputs they may have together.
const (
	blockSize    = 256
	deviceBlock  = 4096 // on a device, where every block costs the way there
	blockOutputs = 1 << 22
)

// eachJudged hands losses and outputs of c's examples to use, some at a time.
func (l *networkLearner[F]) eachJudged(theta []float64, c *data.Client, use func(from int, losses []float64, outputs []F)) error {
	out, all := l.Output().Len(), c.Len()
	if all == 0 {
		return l.fitting(c)
	}
	block := blockSize
	if l.device != nil {
		block = deviceBlock
	}
	block = min(block, max(1, blockOutputs/out))
	if l.outputs == nil {
		l.outputs, l.losses = make([]F, block*out), make([]float64, block)
	}
	spare := make([]F, out) // nobody asks for this gradient
	for from := 0; from < all; from += block {
		n := min(block, all-from)
		outputs, losses := l.outputs[:n*out], l.losses[:n]
		if err := l.lay(theta, c, identity(&l.every, from+n)[from:], l.judged); err != nil {
			return err
		}
		if err := l.engine.check(l.theta, l.ex, l.rows); err != nil {
			return err
		}
		targets := l.engine.targets()
		if l.engine.noise != nil {
			l.engine.noise.first = from
		}
		if err := l.outputsOf(outputs, c, l.every[from:from+n]); err != nil {
			return err
		}
		for k := range losses {
			label, target := 0, []F(nil)
			if l.judged.labelled() {
				label = l.ex.Labels[k]
			} else {
				target = l.ex.Targets[k*targets : (k+1)*targets]
			}
			losses[k] = l.judged.loss(outputs[k*out:(k+1)*out], label, target, spare)
		}
		use(from, losses, outputs)
	}
	return nil
}

func (l *networkLearner[F]) Judge(theta []float64, c *data.Client) (loss float64, wrong int, err error) {
	if l.judgesTexts() {
		losses := make([]float64, c.Len())
		if err := l.textLosses(losses, theta, c); err != nil {
			return 0, 0, err
		}
		return mean(losses), 0, nil
	}
	out := l.Output().Len()
	err = l.eachJudged(theta, c, func(_ int, losses []float64, outputs []F) {
		for k, e := range losses {
			loss += e
			if l.classes > 0 && l.answer(outputs[k*out:(k+1)*out]) != l.ex.Labels[k] {
				wrong++
			}
		}
	})
	return loss / float64(max(1, c.Len())), wrong, err
}

// answer is the class that outputs speak for: the first of equals.
func (l *networkLearner[F]) answer(outputs []F) int {
	if len(outputs) > 1 {
		return largestAt(outputs)
	}
	middle := F(0)
	if !l.judged.labelled() { // squares of 0 and 1
		middle = 0.5
	}
	if outputs[0] > middle {
		return 1
	}
	return 0
}

// largestAt is where the largest value is: the first of equals.
func largestAt[F Float](values []F) int {
	best := 0
	for j, v := range values {
		if v > values[best] {
			best = j
		}
	}
	return best
}

func (l *networkLearner[F]) Losses(dst, theta []float64, c *data.Client) error {
	if l.judgesTexts() {
		return l.textLosses(dst, theta, c)
	}
	return l.eachJudged(theta, c, func(from int, losses []float64, _ []F) { copy(dst[from:], losses) })
}

func (l *networkLearner[F]) Outputs(dst, theta []float64, c *data.Client) ([]float64, int, error) {
	err := l.eachJudged(theta, c, func(_ int, _ []float64, outputs []F) {
		for _, v := range outputs {
			dst = append(dst, float64(v))
		}
	})
	return dst, l.Output().Len(), err
}
