package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/kernel"
	"github.com/coterie-fl/coterie/model"
)

// Program is the helper's name: it is looked for beside the running program, then in PATH.
// The environment's COTERIE_CUDA_PROGRAM names another.
const Program = "coterie-cuda"

// Device is one network on a GPU.
type Device struct {
	hello  Hello
	layout Layout
	plan   model.Plan
	output int

	mu     sync.Mutex
	helper *helper
	shared []byte // the helper's
	mail   *Mailbox
	sets   map[*data.Images]uint32
	side   uint32 // whose norms were given last
	lost   error  // the first failure: nothing works any more
}

// Open readies device number n for a network, or says why it cannot be.
func Open(n int, p model.Plan) (*Device, error) {
	key := keyFor(n)
	for {
		h, fresh, err := kept(key), false, error(nil)
		if h == nil {
			if h, fresh, err = taken(key); err != nil {
				return nil, err
			}
			err = h.greet()
		}
		d := &Device{hello: h.hello, plan: p, layout: LayoutOf(p), output: p.Layers[len(p.Layers)-1].Out.Len(), helper: h, sets: map[*data.Images]uint32{}}
		if err == nil {
			err = d.begin()
		}
		if err == nil {
			return d, nil
		}
		_ = h.end() // what went wrong is told
		if fresh || !h.program.spoiled() {
			return nil, err
		} // it was lost, or had ended, while nobody looked: another one is started
	}
}

// begin tells the plan.
func (d *Device) begin() error {
	h := d.helper
	if err := h.share(d.layout.Size); err != nil {
		return err
	}
	text, err := json.Marshal(d.plan)
	if err != nil {
		return err
	}
	if err := h.tell(Ask{What: AskPlan, A: uint32(len(text)), B: uint32(h.which)}, text); err != nil {
		return h.gone(err)
	}
	if err := h.heard(); err != nil {
		return err
	}
	d.shared, d.mail = h.shared, NewMailbox(h.shared, h.to, h.from)
	return nil
}

// Close gives the device's memory back. The helper waits for the next network.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.helper
	if h == nil {
		return nil
	}
	// Whoever asks for times is told them when the helper ends.
	last := d.lost != nil || h.program.spoiled() || os.Getenv("COTERIE_CUDA_TIMES") != "" || d.ask(Ask{What: AskForget}) != nil
	if d.helper, d.shared = nil, nil; d.lost == nil {
		d.lost = errors.New("the device was closed")
	}
	if last {
		return h.end()
	}
	return h.keep()
}

// Hello is whom one talks to.
func (d *Device) Hello() Hello { return d.hello }

// Lost is what went wrong first: nothing works after it. Nil: nothing did.
func (d *Device) Lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// Gradients is model.Device's.
func (d *Device) Gradients(theta []float32, c *data.Client, rows []int, use func(norms []float64, add func(sum, factors []float32) error) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.addsFloats(); err != nil {
		return err
	}
	var sums [2][]float32
	err := d.chunks(theta, c, rows, 1, func(norms []float64) error {
		return use(norms, func(sum, factors []float32) error {
			slot, err := slotOf(&sums, sum)
			if err != nil {
				return err
			}
			if len(factors) != len(norms) || len(sum) != d.plan.Parameters {
				return fmt.Errorf("cuda: %d factors of %d rows, into a sum of %d values of %d", len(factors), len(norms), len(sum), d.plan.Parameters)
			}
			return d.add(slot, factors)
		})
	})
	if err != nil {
		return err
	}
	return d.home(&sums)
}

// chunks takes rows forwards and back under theta, one chunk after another, and gives use the norms of
// each; sums begin with the first one, or not at all.
func (d *Device) chunks(theta []float32, c *data.Client, rows []int, begin uint32, use func(norms []float64) error) error {
	if err := d.together(rows); err != nil {
		return err
	}
	set, err := d.ready(theta, c)
	if err != nil {
		return err
	}
	back := func(at int, count, side uint32) Ask {
		return Ask{AskBack, set, count, first(at), Sided(side, begin*first(at))}
	}
	return d.inTurn(c, rows, back, nil, use)
}

// addsFloats refuses clipped sums of floats where norms are made for whole numbers, whose clip allows for
// less rounding.
func (d *Device) addsFloats() error {
	if d.plan.Whole {
		return fmt.Errorf("cuda: the device was opened for sums of whole numbers (model.Plan.Whole), and is asked for clipped ones of floats")
	}
	return nil
}

// Whole is model.Device's.
func (d *Device) Whole(theta []float32, c *data.Client, rows []int, use func(norms []float64, add func(sum, weights []float64) error) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.plan.Whole {
		return fmt.Errorf("cuda: the device was not opened for sums of whole numbers (model.Plan.Whole)")
	}
	return d.chunks(theta, c, rows, 0, func(norms []float64) error {
		return use(norms, func(sum, weights []float64) error {
			if len(weights) != len(norms) || len(sum) != d.plan.Parameters {
				return fmt.Errorf("cuda: %d weights of %d rows, into a sum of %d values of %d", len(weights), len(norms), len(sum), d.plan.Parameters)
			}
			copy(view[float64](d.shared, d.layout.Factors, len(weights)), weights)
			if err := d.ask(Ask{What: AskWhole, B: uint32(len(weights)), C: d.side}); err != nil {
				return err
			}
			kernel.Axpy(1, view[float64](d.shared, d.layout.Sums, len(sum)), sum)
			return nil
		})
	})
}

// inParts takes rows in parts of one size, of most at the most, each laid out for the helper.
func (d *Device) inParts(c *data.Client, rows []int, most int, do func(at int, part []int) error) error {
	size := evenly(len(rows), most)
	for at := 0; at < len(rows); at += size {
		part := rows[at:min(at+size, len(rows))]
		if err := d.idle(); err != nil {
			return err
		}
		if err := d.rows(part, c); err != nil {
			return err
		}
		if err := do(at, part); err != nil {
			return err
		}
	}
	return nil
}

// inTurn has parts of rows go forwards and back, by the message back, and gives use the
// norms of each part's gradients, in their order; add is then of these. As many parts are
// on the device as it has sides, so that it computes one while the norms of the part before
// travel; what it does when is the same every time. With the last part on its way, and
// its norms not yet asked for, meanwhile is done, unless it is nil.
func (d *Device) inTurn(c *data.Client, rows []int, back func(at int, count, side uint32) Ask, meanwhile func() error, use func(norms []float64) error) error {
	sides := uint32(Sides(d.plan))
	var sent, used uint32 // parts
	var counts [2]int
	next := func() error {
		d.side = used % sides
		used++
		norms, err := d.norms(d.side, counts[d.side])
		if err != nil {
			return err
		}
		return use(norms)
	}
	err := d.inParts(c, rows, d.layout.Chunk, func(at int, part []int) error {
		side := sent % sides
		sent++
		counts[side] = len(part)
		if err := d.ask(back(at, uint32(len(part)), side)); err != nil {
			return err
		}
		if at+len(part) == len(rows) && meanwhile != nil {
			if err := meanwhile(); err != nil {
				return err
			}
		}
		if sent-used < sides {
			return nil
		}
		return next()
	})
	for err == nil && used < sent {
		err = next()
	}
	return err
}

// norms asks for those of the gradients of the rows of a side.
func (d *Device) norms(side uint32, count int) ([]float64, error) {
	if err := d.ask(Ask{What: AskNorms, A: side}); err != nil {
		return nil, err
	}
	norms := view[float64](d.shared, d.layout.Norms+8*int(side)*d.layout.Chunk, count)
	for i, square := range norms {
		norms[i] = root(square)
	}
	return norms, nil
}

// add adds the gradients whose norms were given last, times factors, to a sum.
func (d *Device) add(slot uint32, factors []float32) error {
	copy(view[float32](d.shared, d.layout.Factors+4*int(slot)*d.layout.Chunk, len(factors)), factors)
	return d.ask(Ask{What: AskAdd, A: slot, B: uint32(len(factors)), C: d.side})
}

// step adds rows' gradients to sum 0, each as much as share says.
func (d *Device) step(a Ask, share float32) error {
	factors := view[float32](d.shared, d.layout.Factors, int(a.B))
	for i := range factors {
		factors[i] = share
	}
	return d.ask(a)
}

// together refuses rows that are more than a chunk where all of them make one gradient.
func (d *Device) together(rows []int) error {
	if d.plan.Loss == "rmse" && len(rows) > d.layout.Chunk {
		return fmt.Errorf("cuda: the loss rmse is one root over a batch of %d examples, and a device takes %d of this network at a time; use smaller batches, or run.device cpu", len(rows), d.layout.Chunk)
	}
	return nil
}

// first says that a chunk is the first: of new parameters, and of sums.
func first(at int) uint32 {
	if at == 0 {
		return 1
	}
	return 0
}

// slotOf is which of the two sums one is.
func slotOf(sums *[2][]float32, sum []float32) (uint32, error) {
	for i := range sums {
		if sums[i] == nil {
			sums[i] = sum
		}
		if len(sum) > 0 && &sums[i][0] == &sum[0] {
			return uint32(i), nil
		}
	}
	return 0, fmt.Errorf("cuda: a third sum; there are two")
}

// home adds the device's sums to those that were asked for.
func (d *Device) home(sums *[2][]float32) error {
	mask := uint32(0)
	for i := range sums {
		if sums[i] != nil {
			mask |= 1 << i
		}
	}
	if mask == 0 {
		return nil
	}
	if err := d.ask(Ask{What: AskSums, A: mask}); err != nil {
		return err
	}
	for i, sum := range sums {
		if sum != nil {
			kernel.Axpy(1, view[float32](d.shared, d.layout.Sums+4*i*d.plan.Parameters, len(sum)), sum)
		}
	}
	return nil
}

// Mean is model.Device's.
func (d *Device) Mean(dst, theta []float32, c *data.Client, rows []int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.together(rows); err != nil {
		return err
	}
	set, err := d.ready(theta, c)
	if err != nil {
		return err
	}
	if len(dst) != d.plan.Parameters || len(rows) == 0 {
		return fmt.Errorf("cuda: a mean of %d rows, into %d values of %d", len(rows), len(dst), d.plan.Parameters)
	}
	share := float32(1 / float64(len(rows)))
	err = d.inParts(c, rows, d.layout.Chunk, func(at int, part []int) error {
		return d.step(Ask{AskStep, set, uint32(len(part)), first(at), first(at)}, share)
	})
	if err != nil {
		return err
	}
	if err := d.ask(Ask{What: AskSums, A: 1}); err != nil {
		return err
	}
	copy(dst, view[float32](d.shared, d.layout.Sums, len(dst)))
	return nil
}

// Outputs is model.Device's.
func (d *Device) Outputs(dst, theta []float32, c *data.Client, rows []int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(dst) != len(rows)*d.output {
		return fmt.Errorf("cuda: %d outputs of %d rows of %d", len(dst), len(rows), d.output)
	}
	set, err := d.ready(theta, c)
	if err != nil {
		return err
	}
	return d.inParts(c, rows, d.layout.Chunk, func(at int, part []int) error {
		if err := d.ask(Ask{AskOutputs, set, uint32(len(part)), first(at), 0}); err != nil {
			return err
		}
		copy(dst[at*d.output:], view[float32](d.shared, d.layout.Outputs, len(part)*d.output))
		return nil
	})
}

// Losses is model.Device's.
func (d *Device) Losses(dst []float64, theta []float32, c *data.Client, rows []int, noise []float32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	each, most, noised := 0, d.layout.Chunk, uint32(0)
	if d.plan.Words && noise != nil {
		each, most, noised = d.plan.Layers[0].Out.Len(), d.layout.Noisy, 1
	}
	if len(dst) != len(rows) || !d.plan.Words || len(noise) != len(rows)*each {
		return fmt.Errorf("cuda: %d losses of %d rows, with %d values of noise", len(dst), len(rows), len(noise))
	}
	if _, err := d.ready(theta, c); err != nil {
		return err
	}
	return d.inParts(c, rows, most, func(at int, part []int) error {
		if noised == 1 {
			copy(view[float32](d.shared, d.layout.Noise, len(part)*each), noise[at*each:])
		}
		if err := d.ask(Ask{AskLosses, 0, uint32(len(part)), first(at), noised}); err != nil {
			return err
		}
		copy(dst[at:], view[float64](d.shared, d.layout.Outputs, len(part)))
		return nil
	})
}

// ready lays the parameters out and has the device hold the pictures; texts and values travel
// when they are asked for.
func (d *Device) ready(theta []float32, c *data.Client) (set uint32, err error) {
	if d.lost != nil {
		return 0, d.lost
	}
	if len(theta) != d.plan.Parameters {
		return 0, fmt.Errorf("cuda: %d parameters for a network of %d", len(theta), d.plan.Parameters)
	}
	copy(view[float32](d.shared, d.layout.Theta, len(theta)), theta)
	return d.setOf(c)
}

// setOf has the device hold a client's pictures.
func (d *Device) setOf(c *data.Client) (uint32, error) {
	if d.plan.Words || d.plan.Rows {
		return 0, nil
	}
	set, held := d.sets[c.Images]
	if held {
		return set, nil
	}
	return d.hold(c.Images)
}

// maxSets is how many sets of pictures a device holds: what is held is never let go.
const maxSets = 64

// hold brings pictures to the device.
func (d *Device) hold(pictures *data.Images) (uint32, error) {
	if len(d.sets) == maxSets {
		return 0, fmt.Errorf("cuda: a device holds %d sets of pictures at most, and this run has more", maxSets)
	}
	set, each := uint32(len(d.sets)), d.plan.Input.Len()
	if err := d.ask(Ask{What: AskHold, A: uint32(pictures.Len()), B: uint32(each)}); err != nil {
		return 0, err
	}
	room := d.shared[d.layout.Staging:][:staging]
	pixels := pictures.Pixels
	at := uint64(0)
	for len(pixels) > 0 {
		n := copy(room, pixels)
		if err := d.ask(Ask{AskPixels, set, uint32(n), uint32(at), uint32(at >> 32)}); err != nil {
			return 0, err
		}
		pixels, at = pixels[n:], at+uint64(n)
	}
	aims := view[int32](d.shared, d.layout.Staging, staging/4)
	for from := 0; from < pictures.Len() && !d.plan.Itself; from += len(aims) {
		part := aims[:min(len(aims), pictures.Len()-from)]
		for i := range part {
			if d.plan.Classes > 0 {
				part[i] = int32(pictures.Labels[from+i])
			} else {
				part[i] = int32(math.Float32bits(float32(pictures.Targets[from+i])))
			}
		}
		if err := d.ask(Ask{AskLabels, set, uint32(len(part)), uint32(from), 0}); err != nil {
			return 0, err
		}
	}
	d.sets[pictures] = set
	return set, nil
}

// rows says which pictures are next, or gives the texts or values.
func (d *Device) rows(rows []int, c *data.Client) error {
	switch {
	case d.plan.Words:
		return d.texts(rows, c)
	case d.plan.Rows:
		return d.values(rows, c)
	}
	to := view[int32](d.shared, d.layout.Rows, len(rows))
	for i, row := range rows {
		if row < 0 || row >= c.Images.Len() {
			return fmt.Errorf("cuda: picture %d of %d", row, c.Images.Len())
		}
		to[i] = int32(row)
	}
	return nil
}

// values lays rows' values out, and behind them what their outputs are compared with.
func (d *Device) values(rows []int, c *data.Client) error {
	each := d.plan.Input.Len()
	to, aims := view[float32](d.shared, d.layout.Rows, len(rows)*each), view[int32](d.shared, d.layout.Rows+4*len(rows)*each, len(rows))
	for i, row := range rows {
		if row < 0 || row >= len(c.Y) || (row+1)*each > len(c.X) {
			return fmt.Errorf("cuda: row %d of %d", row, len(c.Y))
		}
		kernel.Narrow(to[i*each:(i+1)*each], c.X[row*each:(row+1)*each])
		var err error
		if aims[i], err = d.plan.Aim(c.Y[row]); err != nil {
			return fmt.Errorf("row %d has %w", row, err)
		}
	}
	return nil
}

// texts lays the words of rows out.
func (d *Device) texts(rows []int, c *data.Client) error {
	each, words := d.plan.Input.Len(), float64(d.plan.Layers[0].Words)
	to := view[int32](d.shared, d.layout.Rows, len(rows)*each)
	for i, row := range rows {
		if row < 0 || (row+1)*each > len(c.X) {
			return fmt.Errorf("cuda: text %d of %d", row, len(c.X)/each)
		}
		for k, v := range c.X[row*each : (row+1)*each] {
			if !(v >= 0 && v < words && v == float64(int32(v))) {
				return fmt.Errorf("row %d: value %d is %v, which is no word; allowed: whole numbers from 0 to %v, as they are: not standardised", row, k, v, words-1)
			}
			to[i*each+k] = int32(v)
		}
	}
	return nil
}

// ask sends a message and waits for its answer, if it has one.
func (d *Device) ask(a Ask) error { return d.order(a, nil) }

// order is ask, with what belongs to the message.
func (d *Device) order(a Ask, payload []byte) error {
	if d.lost != nil {
		return d.lost
	}
	if err := d.mail.Put(a, payload, runtime.Gosched); err != nil {
		return d.gone(err)
	}
	if !a.answered() {
		return nil
	}
	fault, err := d.mail.Answer(runtime.Gosched)
	if err != nil {
		return d.gone(err)
	}
	if fault != "" {
		d.lost = fmt.Errorf("%s: %s", d.hello.Name, fault)
		d.helper.program.spoil()
	}
	return d.lost
}

// gone is what is said when the helper has ended.
func (d *Device) gone(err error) error {
	if d.lost == nil {
		d.lost = d.helper.gone(err)
	}
	return d.lost
}

// view is a part of the shared memory as values.
func view[T any](memory []byte, at, n int) []T {
	if n == 0 {
		return nil
	}
	var one T
	_ = memory[at : at+n*int(unsafe.Sizeof(one))]
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[at])), n)
}
