package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/queue"
)

// queueFlags say whether others make a command's cells, and over which queue.
type queueFlags struct {
	queue.Options
	listen     string
	listenOnly bool
}

// addAccess adds the flags that say where a queue is and who may use it.
func (q *queueFlags) addAccess(flags *pflag.FlagSet) {
	flags.StringVar(&q.URL, "nats", "", "NATS servers of a queue of cells, for example nats://10.0.0.1:4222; several: separated by commas (docs/workers.md)")
	flags.StringVar(&q.Creds, "nats-creds", "", "file with the credentials of a NATS user")
	flags.StringVar(&q.TokenFile, "nats-token-file", "", "file with the queue's token")
	flags.StringVar(&q.NKey, "nats-nkey", "", "file with the seed of a NATS user's nkey")
	flags.StringVar(&q.User, "nats-user", "", "name of a NATS user that has a password")
	flags.StringVar(&q.PasswordFile, "nats-password-file", "", "file with that user's password")
	flags.StringVar(&q.CA, "nats-ca", "", "file with the certificate of the authority of the queue's servers (default: the system's)")
	flags.StringVar(&q.Cert, "nats-cert", "", "file with the own certificate for the queue")
	flags.StringVar(&q.Key, "nats-key", "", "file with its key")
	flags.StringVar(&q.Name, "nats-name", "", "name of the queue among others on the same servers (default coterie)")
}

// add adds the flags of a command whose cells a queue may take.
func (q *queueFlags) add(flags *pflag.FlagSet) {
	q.addAccess(flags)
	flags.StringVar(&q.listen, "listen", "", "hand cells to workers that come to this address, for example 127.0.0.1:4222, by a queue of this command's own")
	flags.BoolVar(&q.listenOnly, "listen-only", false, "with --listen: leave all cells to others")
	flags.IntVar(&q.Replicas, "nats-replicas", 0, "copies of everything in the queue (default: three in a cluster, one elsewhere)")
	flags.DurationVar(&q.Lease, "lease", 30*time.Second, "how long a cell stays with a worker that is not heard of")
}

// thisCode is the program whose results a queue's cells are.
func thisCode() (queue.Code, error) {
	c := queue.Code{Version: version(), Kernel: model.Kernel()}
	if artifact.Released() {
		return c, nil
	}
	var err error
	c.Build, err = queue.ThisBuild() // the version names no commit
	return c, err
}

// runner is who makes a command's cells; close ends it. Nil: this process does, without a
// queue. A queue of the command's own is worked on by this process, too.
func (a *app) runner(ctx context.Context, q queueFlags, out, data string, workers int) (runner cells.Runner, done func(), err error) {
	if workers < 0 {
		return nil, nil, fmt.Errorf("%w: --workers %d: want at least 1, or leave it out", errUsage, workers)
	}
	if q.URL == "" && q.listen == "" {
		for flag, value := range map[string]string{"nats-creds": q.Creds, "nats-token-file": q.TokenFile, "nats-nkey": q.NKey, "nats-user": q.User, "nats-password-file": q.PasswordFile, "nats-ca": q.CA, "nats-cert": q.Cert, "nats-key": q.Key, "nats-name": q.Name} {
			if value != "" {
				return nil, nil, fmt.Errorf("%w: --%s is about a queue: name it with --nats, or begin one with --listen", errUsage, flag)
			}
		}
		return nil, attend(out, nil), nil
	}
	if q.URL != "" && q.listen != "" {
		return nil, nil, fmt.Errorf("%w: --nats names an existing queue, --listen begins one: give one of them", errUsage)
	}
	if q.Code, err = thisCode(); err != nil {
		return nil, nil, err
	}
	q.Log = a.warn
	if q.URL != "" {
		opened, err := queue.Open(ctx, q.Options)
		if err != nil {
			return nil, nil, err
		}
		where := queue.WithoutSecrets(q.URL)
		a.remark("cells go to the queue at %s; machines take part with: coterie worker --nats %s", where, where)
		stop := attend(out, opened.Crew)
		return opened, func() { stop(); opened.Close() }, nil
	}
	files, err := cacheFolder(filepath.Join(out, "queue", "files"))
	if err != nil {
		return nil, nil, err
	}
	embedded, err := queue.Embed(ctx, q.listen, filepath.Join(out, "queue"), q.Options)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	a.remark("others take part with: coterie worker --nats nats://%s --nats-token-file %s", embedded.Address, embedded.TokenFile)
	ctx, end := context.WithCancel(ctx)
	stop := attend(out, embedded.Crew)
	var own sync.WaitGroup
	if !q.listenOnly {
		own.Go(func() {
			w := a.worker(data, files, workers)
			if err := embedded.Work(ctx, w); err != nil {
				a.warn("this process makes no more cells: %v", err)
			}
		})
	}
	return embedded, func() {
		end()
		stop()
		own.Wait()
		embedded.Close()
	}, nil
}

// attendEvery is how often a command whose cells are being made gives a sign of life; tests
// do so more often.
var attendEvery = 4 * time.Second

// attend writes who makes a command's cells into its folder, once it is there, until stop:
// whoever looks (coterie dash) knows then that cells which take long are being made. What
// cannot be written is missed by nobody else.
func attend(out string, crew func() []cells.Hand) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		for tick := time.NewTicker(attendEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			c := cells.Crew{Workers: []cells.Hand{}}
			if crew != nil {
				c.Workers = crew()
			}
			_ = c.Write(out)
		}
	})
	return func() {
		end()
		over.Wait()
		_ = os.Remove(filepath.Join(out, cells.CrewFile))
	}
}

// warn tells people what went wrong and is tried again.
func (a *app) warn(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, "coterie: "+format+"\n", args...)
	}
}

// worker is a process that takes cells.
func (a *app) worker(data, cache string, slots int) queue.Worker {
	if slots <= 0 {
		slots = runtime.GOMAXPROCS(0)
	}
	return queue.Worker{
		Slots: slots, Data: data, Makers: makers(data, cache),
		Tell: func(format string, args ...any) { a.warn(format, args...) },
	}
}

// cacheFolder is where a worker lays out fetched files.
func cacheFolder(flag string) (string, error) {
	if flag != "" {
		return flag, os.MkdirAll(flag, 0o700)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	folder := filepath.Join(base, "coterie", "worker")
	return folder, os.MkdirAll(folder, 0o700)
}
