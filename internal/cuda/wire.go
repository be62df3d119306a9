// Package cuda computes networks on an NVIDIA GPU. The driver's library cannot be loaded
// into a static program, so that a helper, coterie-cuda, has it: this package starts the
// helper and talks to it, through pipes and memory that both see.
package cuda

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/coterie-fl/coterie/model"
)

// Version is that of the messages: both programs must be of the same.
const Version = 7

// Hello is what the helper says first: whom one talks to, or why there is nobody.
type Hello struct {
	Version int
	Name    string // of the device
	Driver  string // what the driver supports, such as CUDA 13.0
	Kernels string // hash of their source
	Fault   string // empty: none
}

// What the helper is asked for.
const (
	AskPlan    = iota + 1 // through the pipe: the A bytes that follow are a plan; file B is the shared memory, which has been made
	AskHold               // room for a set of A pictures of B bytes
	AskPixels             // B bytes of set A from the staging room, to offset C
	AskLabels             // B labels, or the bits of values, likewise
	AskBack               // B rows of set A, or B texts or rows of values, which lie where rows do, forwards and back; C says under which parameters, D which side, and whether sums begin (see Sided)
	AskNorms              // of the rows of side A that went back last
	AskAdd                // the weighted gradients of those, B rows of side C, to sum A
	AskWhole              // bring home the sum of the gradients of those, B rows of side C, times weights, each value rounded toward zero: doubles, all
	AskSums               // bring sums home: bits of A
	AskOutputs            // of B rows of set A; C as above
	AskLosses             // of B texts; C as above, D is 1 if there is noise on their words
	AskPut                // vector A, from the vectors' room
	AskGet                // vector A, to there
	AskClear              // sums begin
	AskStep               // B rows of set A to sum 0, each as much as its factor says; C and D as above
	AskDraw               // noise, for later: a NoiseOrder
	AskNoise              // on sum 0: a NoiseOrder
	AskTurn               // sums and what was released last: a TurnOrder; products come back
	AskMove               // the parameters that stay: a MoveOrder
	AskForget             // the network and its pictures: the next plan comes through the pipe, after an answer there
)

// Under which parameters rows are taken: those that the device has, or those that lie in the
// shared memory.
const (
	ThetaSame = iota
	ThetaNew
)

// Sided is which side rows go to, and 1 if sums begin, as AskBack has them.
func Sided(side, begins uint32) uint32 { return side<<1 | begins }

// Ask is one message to the helper.
type Ask struct{ What, A, B, C, D uint32 }

// askBytes is how many bytes of its place in the mailbox a message takes.
const askBytes = 32

// answered says that the one who asks waits for an answer. What goes wrong with the others
// is told with the next one.
func (a Ask) answered() bool {
	switch a.What {
	case AskBack, AskAdd, AskClear, AskStep, AskDraw, AskNoise, AskMove:
		return false
	}
	return true
}

// What the mailbox takes of the shared memory, from its start.
const (
	mailSlots   = 16
	slotBytes   = 1024
	faultBytes  = 1024
	headerBytes = 512
	mailBytes   = headerBytes + faultBytes + mailSlots*slotBytes
)

// Answer says what became of a plan, or of its end: as many bytes of a sentence follow as Fault says. Lost
// is 1 if the driver does nothing any more for whoever uses the device through this helper.
type Answer struct{ Fault, Lost uint32 }

// Send writes a message.
func Send(w io.Writer, m any) error { return binary.Write(w, binary.LittleEndian, m) }

// Receive reads one.
func Receive(r io.Reader, m any) error { return binary.Read(r, binary.LittleEndian, m) }

// noisyTexts is how many texts with noise on their words are judged at a time.
const noisyTexts = 256

// staging is how many bytes of pictures travel at a time.
const staging = 4 << 20

// Layout is where what both programs share lies in their memory, in bytes. There are two
// sums, and factors for each: whoever adds does not wait. Norms are of two sides.
type Layout struct {
	Chunk                                                                int // examples
	Theta, Sums, Rows, Factors, Norms, Outputs, Staging, Vector, Product int
	Noise, Noisy                                                         int // noise on the words of so many texts; none: of pictures
	Size                                                                 int
}

// LayoutOf follows from the plan, so that both programs have the same.
func LayoutOf(p model.Plan) Layout {
	l := Layout{Chunk: chunkOf(p)}
	room := func(bytes int) int {
		at := l.Size
		l.Size += (bytes + 255) / 256 * 256
		return at
	}
	room(mailBytes)
	output := p.Input.Len()
	if n := len(p.Layers); n > 0 {
		output = p.Layers[n-1].Out.Len()
	}
	l.Theta, l.Sums = room(4*p.Parameters), room(8*p.Parameters)
	row := 4
	switch {
	case p.Words: // rows are texts, and their losses are what comes out
		row, output = 4*p.Input.Len(), 2
	case p.Rows: // values of all, then what their outputs are compared with
		row = 4 * (p.Input.Len() + 1)
	}
	l.Rows, l.Factors, l.Norms = room(row*l.Chunk), room(8*l.Chunk), room(16*l.Chunk)
	l.Outputs, l.Staging = room(4*l.Chunk*output), room(staging)
	if p.Words {
		l.Noisy = min(l.Chunk, noisyTexts)
		l.Noise = room(4 * l.Noisy * p.Layers[0].Out.Len())
	}
	l.Vector, l.Product = room(8*p.Parameters), room(8*ProductParts(p.Parameters)*5)
	return l
}

// ProductParts is in how many parts products of n values come back.
func ProductParts(n int) int { return (n + 16*256 - 1) / (16 * 256) }

// Megabytes for people.
func Megabytes(bytes int) string { return fmt.Sprintf("%d MB", (bytes+999_999)/1_000_000) }

// root is a norm of its square, enlarged by slack; what is not finite stays so.
func root(square float64) float64 { return math.Sqrt(square) * slack }

// slack is what norms are enlarged by: more than weights and products can be rounded up
// (docs/proofs/gpu-clip.md).
const slack = 1 + 0x1p-20
