package federation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/wire"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/ledger"
)

// helperEnv makes a test binary play a part in a process of its own.
const helperEnv = "COTERIE_TEST_PART"

// TestChaosHelper is not a test: it is the process that other tests start and kill.
func TestChaosHelper(t *testing.T) {
	switch os.Getenv(helperEnv) {
	case "participant":
		os.Exit(helperParticipant())
	case "server":
		os.Exit(helperServer())
	}
}

// helper prepares a process that plays a part, with further variables.
func helper(part string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestChaosHelper$", "-test.count=1")
	cmd.Env = append(os.Environ(), append(env, helperEnv+"="+part)...)
	cmd.SysProcAttr = dieWithParent()
	return cmd
}

// mortality kills the process at the n-th passing of a named point.
type mortality struct {
	point string
	left  int
}

func newMortality(text string) *mortality {
	point, times, _ := strings.Cut(text, "*")
	n, _ := strconv.Atoi(times)
	return &mortality{point: point, left: n}
}

func (m *mortality) pass(point string) {
	if point != m.point {
		return
	}
	if m.left--; m.left <= 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until it arrives
	}
}

// deathPoints are where a participant can be made to die: around everything that it
// records or sends.
var deathPoints = []string{
	"before reserve", "after reserve", "before store", "after store", "before commit", "after commit",
	"before offer", "after offer", "before upload", "after upload", "before save", "after save",
}

// mortalLedger dies around the ledger's operations.
type mortalLedger struct {
	*ledger.Ledger
	m *mortality
}

func (l mortalLedger) Reserve(c ledger.Charge) error {
	l.m.pass("before reserve")
	defer l.m.pass("after reserve")
	return l.Ledger.Reserve(c)
}

func (l mortalLedger) Store(s ledger.Slot, b []byte) error {
	l.m.pass("before store")
	defer l.m.pass("after store")
	return l.Ledger.Store(s, b)
}

func (l mortalLedger) Commit(s ledger.Slot, r ledger.SignedReceipt) error {
	l.m.pass("before commit")
	defer l.m.pass("after commit")
	return l.Ledger.Commit(s, r)
}

// mortalClient dies around what is sent.
type mortalClient struct {
	wire.FederationClient
	m *mortality
}

func (c mortalClient) Offer(ctx context.Context, q *wire.OfferRequest) (*wire.OfferReply, error) {
	c.m.pass("before offer")
	defer c.m.pass("after offer")
	if strings.HasSuffix(c.m.point, "upload") { // there must be one: as to a server of before
		q = proto.CloneOf(q)
		q.Release = nil
	}
	return c.FederationClient.Offer(ctx, q)
}

func (c mortalClient) Upload(ctx context.Context) (*connect.ClientStreamForClientSimple[wire.UploadPart, wire.UploadReply], error) {
	c.m.pass("before upload")
	defer c.m.pass("after upload") // begun, that is
	return c.FederationClient.Upload(ctx)
}

// mortalMemory dies around what is remembered.
type mortalMemory struct {
	participant.Memory
	m *mortality
}

func (s mortalMemory) Save(round int, p *fl.Participant) error {
	s.m.pass("before save")
	defer s.m.pass("after save")
	return s.Memory.Save(round, p)
}

// helperParticipant takes part as `coterie join` does, and may die on the way.
func helperParticipant() int {
	dir, m := os.Getenv("COTERIE_TEST_DIR"), newMortality(os.Getenv("COTERIE_TEST_DEATH"))
	err := func() error {
		member, err := identity.OpenMember(filepath.Join(dir, "identity"))
		if err != nil {
			return err
		}
		config, err := member.ClientTLS()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
		if err != nil {
			return err
		}
		policy, err := plan.LoadPolicy(text)
		if err != nil {
			return err
		}
		f, err := plan.LoadJoinFile([]byte("{}"), dir)
		if err != nil {
			return err
		}
		book, err := ledger.Open(f.Ledger, policy.Budget())
		if err != nil {
			return err
		}
		defer book.Close()
		client, _ := participant.NewClient(os.Getenv("COTERIE_TEST_SERVER"), config, nil)
		p := participant.New(participant.Options{
			Client: mortalClient{client, m}, Name: member.Name(), Federation: member.Federation(), Signer: member.Signer(),
			Ledger: mortalLedger{book, m}, Policy: policy, Seeded: os.Getenv("COTERIE_TEST_SEEDED") != "",
			Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), Half: participant.HalfOf(f, nil, nil),
			Memory: func(run string, plan ledger.Hash) (participant.Memory, error) {
				files, err := participant.OpenMemory(f.Out, run, plan)
				return mortalMemory{files, m}, err
			},
		})
		_, err = p.Run(context.Background())
		return err
	}()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fl.ErrRefused):
		return 3
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// helperServer serves as `coterie serve` does.
func helperServer() int {
	dir := os.Getenv("COTERIE_TEST_DIR")
	text, err := os.ReadFile(filepath.Join(dir, "serve.yaml"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f, err := plan.LoadServeFile(text, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, err = server.Serve(context.Background(), server.Options{
		File: f, Seeded: true, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Listening: func(string) {},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// freeAddress is a loopback address that nothing listens on now.
func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// enrolled gives a participant an identity through a server that answers at address.
func enrolled(t testing.TB, a *identity.Authority, address, name, dir string) {
	t.Helper()
	invite, err := a.Invite(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	invite.Server = address
	if _, err := participant.Enrol(context.Background(), invite.String(), filepath.Join(dir, "identity"), slog.New(slog.NewTextHandler(io.Discard, nil))); err != nil {
		t.Fatal(err)
	}
}
