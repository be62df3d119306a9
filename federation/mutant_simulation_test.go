package federation_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/store"
	"github.com/coterie-fl/coterie/ledger"
)

// losing forgets an accepted release when a round is closed.
type losing struct{ store.Store }

func (s losing) Answers(ctx context.Context, run string, round int) ([]store.Answer, error) {
	all, err := s.Store.Answers(ctx, run, round)
	for i, a := range all {
		if a.Kind == store.Released && round == 2 {
			return append(all[:i:i], all[i+1:]...), err
		}
	}
	return all, err
}

// doubling counts a release twice.
type doubling struct{ store.Store }

func (s doubling) Answers(ctx context.Context, run string, round int) ([]store.Answer, error) {
	all, err := s.Store.Answers(ctx, run, round)
	for _, a := range all {
		if a.Kind == store.Released && round == 2 {
			return append([]store.Answer{a}, all...), err
		}
	}
	return all, err
}

// hasty says that a release is recorded before it is.
type hasty struct{ store.Store }

func (s hasty) Upload(ctx context.Context, u store.Update) (store.Upload, error) {
	up, err := s.Store.Upload(ctx, u)
	if err != nil || u.Round != 2 || u.Participant != 1 {
		return up, err
	}
	return hastyUpload{up}, nil
}

func (s hasty) Accept(ctx context.Context, u store.Update, content []byte, r *store.Receipt) (bool, error) {
	if u.Round != 2 || u.Participant != 1 {
		return s.Store.Accept(ctx, u, content, r)
	}
	return false, nil
}

type hastyUpload struct{ store.Upload }

func (hastyUpload) Commit(context.Context, *store.Receipt) (bool, error) { return false, nil }

// careless sends before anything is durable.
type careless struct {
	*ledger.Ledger
	mu   sync.Mutex
	held map[ledger.Slot][]byte
}

func (l *careless) Store(s ledger.Slot, noised []byte) error {
	if s.Round != 2 {
		return l.Ledger.Store(s, noised)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[s] = noised
	return nil
}

func (l *careless) Load(s ledger.Slot) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.held[s]; ok {
		return b, nil
	}
	return l.Ledger.Load(s)
}

func (l *careless) Draft(s ledger.Slot) (ledger.Receipt, error) {
	l.mu.Lock()
	b, ok := l.held[s]
	l.mu.Unlock()
	if ok { // it is not stored, and drafted all the same
		return ledger.Receipt{Version: 1, Slot: s, Size: int64(len(b)), Release: simulatedRelease, Enforcement: ledger.Enforced}, nil
	}
	return l.Ledger.Draft(s)
}

// TestPlantedBugsAreFound: the simulation must see what it is there for.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, want string
		store      func(store.Store) store.Store
		ledger     func(*ledger.Ledger) participant.Ledger
	}{
		{name: "a release is lost", want: "counted false, but accepted true",
			store: func(s store.Store) store.Store { return losing{s} }},
		{name: "a release is counted twice", want: "contributors it should be",
			store: func(s store.Store) store.Store { return doubling{s} }},
		{name: "acknowledged before it is recorded", want: "signed for, but not accepted",
			store: func(s store.Store) store.Store { return hasty{s} }},
		{name: "sent before it is stored", want: "which its ledger has not stored",
			ledger: func(l *ledger.Ledger) participant.Ledger {
				return &careless{Ledger: l, held: map[ledger.Slot][]byte{}}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 4, 4, 5)
			w.net.faulty = false
			if c.store != nil {
				w.store = c.store
			}
			if c.ledger != nil {
				w.ledger = c.ledger
			}
			w.run()
			if !strings.Contains(strings.Join(w.anomalies, "\n"), c.want) {
				t.Errorf("not found; what was seen:\n%s", strings.Join(w.anomalies, "\n"))
			}
		})
	}
}
