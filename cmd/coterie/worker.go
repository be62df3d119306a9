package main

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/repro"
	"github.com/coterie-fl/coterie/repro/lab"
	"github.com/coterie-fl/coterie/sweep"
	"github.com/coterie-fl/coterie/sweep/cells"
	"github.com/coterie-fl/coterie/sweep/inputs"
	"github.com/coterie-fl/coterie/sweep/queue"
)

// makers make all kinds of cells that commands put into queues.
func makers(data, cache string) func(cells.Objects) map[string]cells.Maker {
	files := &inputs.Cache{Folder: cache, Data: data}
	var first sync.Once
	return func(o cells.Objects) map[string]cells.Maker {
		first.Do(func() { files.Store = o })
		all := map[string]cells.Maker{}
		maps.Copy(all, sweep.Makers(files))
		maps.Copy(all, lab.Makers(repro.List(), files, version()))
		return all
	}
}

func (a *app) newWorkerCommand() *cobra.Command {
	var q queueFlags
	var folder, cache string
	var slots int
	var every, idle time.Duration
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Take cells of sweeps and studies from a queue",
		Long: "Take cells of coterie sweep, reproduce and run --seeds from a queue, make them, and hand the results back, until it is stopped.\n" +
			"A worker sees the data in the clear and is trusted with them. It takes cells of its own version and kernel set only. A cell that it was making when it was stopped or killed goes to another, from its last checkpoint.",
		Example: "  coterie worker --nats nats://10.0.0.1:4222 --nats-creds worker.creds --data /srv/data",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.URL == "" {
				return fmt.Errorf("%w: name the queue with --nats, for example: coterie worker --nats nats://127.0.0.1:4222", errUsage)
			}
			var err error
			if cache, err = cacheFolder(cache); err != nil {
				return err
			}
			if q.Code, err = thisCode(); err != nil {
				return err
			}
			q.Log = a.warn
			w := a.worker(dataFolder(folder), cache, slots)
			w.CheckpointEvery, w.Idle = every, idle
			a.remark("worker of %s at %s, %s at a time", q.Code, queue.WithoutSecrets(q.URL), prose.Counted(w.Slots, "cell", "cells"))
			return queue.Work(cmd.Context(), q.Options, w)
		},
	}
	flags := cmd.Flags()
	q.addAccess(flags)
	addDataFolder(flags, &folder)
	flags.IntVar(&slots, "workers", 0, "cells at the same time (default: one a core)")
	flags.StringVar(&cache, "cache", "", "folder for files that the queue brings (default: coterie/worker in the user's cache)")
	flags.DurationVar(&every, "checkpoint", 0, "least time between two checkpoints of a cell (default: a third of the lease)")
	flags.DurationVar(&idle, "idle", 0, "end after so long without a cell, such as 1m (default: never)")
	return cmd
}
