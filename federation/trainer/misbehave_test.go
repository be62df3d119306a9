package trainer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the trainer: its first argument is "play".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		play(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// testParameters is more than a pipe holds, so that writing can block.
const testParameters = 20_000

// player is a trainer that does as it is told, but for one thing.
func player(name string, args ...string) Spec {
	return Spec{
		Command:        append([]string{os.Args[0], "play", name}, args...),
		RequestSeconds: 20, StartSeconds: 20,
	}
}

func send(header string, values ...float32) {
	sendRaw(magic, uint32(len(header)), uint64(4*len(values)), header, values...)
}

func sendRaw(magic string, headerSize uint32, valuesSize uint64, header string, values ...float32) {
	b := append([]byte{}, magic...)
	b = binary.LittleEndian.AppendUint32(b, headerSize)
	b = binary.LittleEndian.AppendUint64(b, valuesSize)
	b = append(b, header...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	if _, err := os.Stdout.Write(b); err != nil {
		os.Exit(0)
	}
}

func receive() (q request, values []float32) {
	var prefix [prefixSize]byte
	if _, err := io.ReadFull(os.Stdin, prefix[:]); err != nil {
		os.Exit(0)
	}
	header := make([]byte, binary.LittleEndian.Uint32(prefix[4:]))
	io.ReadFull(os.Stdin, header)
	json.Unmarshal(header, &q)
	raw := make([]byte, binary.LittleEndian.Uint64(prefix[8:]))
	io.ReadFull(os.Stdin, raw)
	for ; len(raw) > 0; raw = raw[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return q, values
}

func hang() { time.Sleep(time.Hour) }

func id(q request) string { return fmt.Sprintf(`{"id":%d}`, q.ID) }

// fork starts another player that writes its number to a file and hangs with our
// pipes open.
func fork(file string, attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0], "play", "sleeper", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdin, os.Stdout, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for range 2000 { // until it is there
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// play is the child's side. Its model answers train with the update theta itself,
// loss with the sum of theta, and gradient i with i+theta.
func play(name string, args []string) {
	switch name {
	case "sleeper":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		os.WriteFile(args[0]+".part", []byte(strconv.Itoa(os.Getpid())), 0o600)
		os.Rename(args[0]+".part", args[0])
		hang()
	case "parent":
		if _, err := Start(context.Background(), player("does not read"), 3); err != nil {
			panic(err)
		}
		hang()
	case "silent":
		hang()
	case "dies at once":
		fmt.Fprintln(os.Stderr, "Traceback: no module named torch")
		os.Exit(3)
	case "prints":
		fmt.Println("Epoch 1/10: loss 0.3")
		hang()
	case "floods before hello":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}
	q, _ := receive()
	parameters, protocol := q.Parameters, 1
	switch name {
	case "other model":
		parameters++
	case "other protocol":
		protocol = 2
	}
	send(fmt.Sprintf(`{"id":%d,"protocol":%d,"parameters":%d,"examples":50}`, q.ID, protocol, parameters))
	if name == "answers unasked" {
		send(id(q))
	}
	if name == "closes its input" {
		os.Stdin.Close()
		hang()
	}
	for {
		if name == "ignores all signals" {
			signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
			hang()
		}
		if name == "does not read" {
			hang()
		}
		q, values := receive()
		answerWell := func() { answerRequest(q, values) }
		if q.Op == "hello" {
			continue
		}
		misbehave(name, args, q, values, answerWell)
	}
}

func answerRequest(q request, values []float32) {
	switch q.Op {
	case "train":
		send(id(q), values...)
	case "loss":
		var sum float64
		for _, v := range values {
			sum += float64(v)
		}
		send(fmt.Sprintf(`{"id":%d,"loss":%v}`, q.ID, sum))
	case "gradients":
		answerGradients(q, values, func(int) float32 { return 0 })
	}
}

func misbehave(name string, args []string, q request, values []float32, answerWell func()) {
	switch name {
	case "hangs":
		hang()
	case "stops itself":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "dies":
		fmt.Fprintln(os.Stderr, "\x1b[31mout of memory\x00")
		os.Exit(7)
	case "is killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "floods stderr":
		go func() {
			for {
				os.Stderr.WriteString(strings.Repeat("x", 1000) + "\n")
			}
		}()
		answerWell()
	case "floods stderr and hangs":
		for {
			os.Stderr.WriteString(strings.Repeat("y", 1000) + "\n")
		}
	case "floods stdout":
		answerWell()
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	case "announces terabytes":
		sendRaw(magic, uint32(len(id(q))), 1<<42, id(q))
		hang()
	case "announces a long header":
		sendRaw(magic, 1<<31, 0, id(q))
		hang()
	case "NaN":
		values[len(values)-1] = float32(math.NaN())
		answerWell()
	case "infinity":
		values[0] = float32(math.Inf(-1))
		answerWell()
	case "one value too few":
		answerRequest(q, values[1:])
	case "one value too many":
		answerRequest(q, append(values, 0))
	case "no JSON":
		send(`{"id":`)
	case "unknown key":
		send(fmt.Sprintf(`{"id":%d,"epsilon":0.1}`, q.ID), values...)
	case "two objects":
		send(id(q)+id(q), values...)
	case "other id":
		q.ID++
		answerRequest(q, values)
	case "wrong magic":
		sendRaw("CTR9", uint32(len(id(q))), 0, id(q))
		hang()
	case "ends within the values":
		sendRaw(magic, uint32(len(id(q))), uint64(4*len(values)), id(q), values[:100]...)
		os.Exit(0)
	case "stops within the values":
		sendRaw(magic, uint32(len(id(q))), uint64(4*len(values)), id(q), values[:100]...)
		hang()
	case "drips":
		for _, c := range magic + strings.Repeat("\x00", 12) {
			os.Stdout.WriteString(string(c))
			time.Sleep(100 * time.Millisecond)
		}
	case "reports an error":
		send(fmt.Sprintf(`{"id":%d,"error":"cuda is gone\u0007"}`, q.ID))
	case "forks and dies":
		fork(args[0], nil)
		os.Exit(1)
	case "forks away and dies":
		fork(args[0], &syscall.SysProcAttr{Setsid: true})
		os.Exit(1)
	case "forks away and hangs":
		fork(args[0], &syscall.SysProcAttr{Setsid: true})
		hang()
	case "mixes examples": // every gradient depends on who else is in the batch
		answerGradients(q, values, func(int) float32 { return float32(len(q.Examples)) })
	case "NaN in one gradient":
		answerGradients(q, values, func(i int) float32 {
			if i == 30 {
				return float32(math.NaN())
			}
			return 0
		})
	default:
		answerWell()
	}
}

func answerGradients(q request, values []float32, extra func(example int) float32) {
	var rows []float32
	for _, i := range q.Examples {
		for _, v := range values {
			rows = append(rows, float32(i)+v+extra(i))
		}
	}
	send(id(q), rows...)
}
