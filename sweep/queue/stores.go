package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// stores are a queue's places on its servers.
type stores struct {
	*link
	cells   jetstream.Stream   // cells that nobody has made yet, a subject a cell
	workers jetstream.Consumer // that hands them out
	results jetstream.KeyValue // by cell: what came of it; kept
	state   jetstream.KeyValue // by cell: its checkpoint, its errors
	alive   jetstream.KeyValue // who is there; forgotten after a while
	objects objects            // files, by hash; checkpoints
	lease   time.Duration      // as whoever asks for cells has set it; for workers
}

const (
	aliveFor = 20 * time.Second    // after its last word somebody is gone
	keepFor  = 30 * 24 * time.Hour // cells that nobody takes, checkpoints that nobody goes on from
)

func (l *link) streamName() string { return strings.ToUpper(l.Name) + "_CELLS" }

func (l *link) objectsName() string { return l.Name + "-objects" }

func (l *link) consumerName() string { return "workers-" + l.Code.name() }

func (l *link) subject(id string) string { return l.Name + ".cells." + l.Code.name() + "." + id }

// create makes the queue's places, or finds them.
func (l *link) create(ctx context.Context) (*stores, error) {
	replicas := l.Replicas
	if replicas == 0 {
		replicas = 1
		if l.nc.ConnectedClusterName() != "" {
			replicas = 3
		}
	}
	s := &stores{link: l, objects: objects{sending: &l.sending, log: l.Log}}
	err := s.createWith(ctx, replicas)
	if without := l.withoutJetStream(err); without != nil {
		return nil, without
	}
	if err != nil && l.Replicas == 0 && replicas > 1 && !late(err) {
		return nil, fmt.Errorf("queue: nothing can be stored three times at %s (%w); name another number with --nats-replicas", WithoutSecrets(l.URL), err)
	}
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return s, nil
}

// withoutJetStream is what to do where servers keep nothing for us; nil: err is another.
func (l *link) withoutJetStream(err error) error {
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return fmt.Errorf("queue: the server at %s has no JetStream (%w); start it with -js, or leave --nats out", WithoutSecrets(l.URL), err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("queue: at %s the account of our user has no JetStream (%w); the server's operator enables it for the account", WithoutSecrets(l.URL), err)
	}
	return nil
}

func (s *stores) createWith(ctx context.Context, replicas int) (err error) {
	// What is there keeps its number of copies: to change it is the operator's.
	s.cells, err = s.js.Stream(ctx, s.streamName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s.cells, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: s.streamName(), Description: "cells that workers are to make", Subjects: []string{s.Name + ".cells.>"},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: replicas, MaxAge: keepFor,
			// A cell that waits already is not queued a second time.
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		})
	}
	if err != nil {
		return err
	}
	if s.results, err = s.bucket(ctx, "results", "what came of cells", 0, replicas); err != nil {
		return err
	}
	if s.state, err = s.bucket(ctx, "state", "cells under way", keepFor, replicas); err != nil {
		return err
	}
	if s.alive, err = s.bucket(ctx, "alive", "who is there", aliveFor, replicas); err != nil {
		return err
	}
	s.objects.store, err = s.js.ObjectStore(ctx, s.objectsName())
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		s.objects.store, err = s.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: s.objectsName(), Description: "models, checkpoints, data", Storage: jetstream.FileStorage, Replicas: replicas})
	}
	if err != nil {
		return err
	}
	s.workers, err = s.cells.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: s.consumerName(), Description: s.Code.String(), FilterSubject: s.subject(">"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.Lease, MaxDeliver: -1, MaxAckPending: 100_000, MaxWaiting: 4096, InactiveThreshold: keepFor,
	})
	return err
}

func (s *stores) bucket(ctx context.Context, name, what string, ttl time.Duration, replicas int) (jetstream.KeyValue, error) {
	kv, err := s.js.KeyValue(ctx, s.Name+"-"+name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: s.Name + "-" + name, Description: what, TTL: ttl, Storage: jetstream.FileStorage, Replicas: replicas})
	}
	return kv, err
}

// errNoQueue means that nobody has asked for cells of this program yet.
var errNoQueue = errors.New("there is no queue for this program yet")

// find finds the places that whoever asks for cells has made.
func (l *link) find(ctx context.Context) (*stores, error) {
	s := &stores{link: l, objects: objects{sending: &l.sending, log: l.Log}}
	var err error
	if s.cells, err = l.js.Stream(ctx, l.streamName()); err == nil {
		s.results, err = l.js.KeyValue(ctx, l.Name+"-results")
	}
	if err == nil {
		s.state, err = l.js.KeyValue(ctx, l.Name+"-state")
	}
	if err == nil {
		s.alive, err = l.js.KeyValue(ctx, l.Name+"-alive")
	}
	if err == nil {
		s.objects.store, err = l.js.ObjectStore(ctx, l.objectsName())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoQueue, err)
	}
	if s.workers, err = s.cells.Consumer(ctx, l.consumerName()); err != nil {
		return s, fmt.Errorf("%w: %w", errNoQueue, err)
	}
	s.lease = s.workers.CachedInfo().Config.AckWait // not the link's own, which several workers may share
	return s, nil
}
