package boundeddp

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
)

// partition is how pictures are shared among clients.
type partition string

// Pictures are dealt at random; so that a client has those of one hand, or of few; or so
// that it has two classes, mostly.
const (
	byChance partition = "random"
	byWriter partition = "by writer"
	byLabel  partition = "by label"
)

var partitions = []partition{byChance, byWriter, byLabel}

// deal shares pictures of writers among clients, equally many each; 0: as many as there
// are. A client has one piece of the pictures in the partition's order, by label two
// (McMahan et al. 2017).
func deal(writers []data.Client, how partition, clients, each int, seed uint64) ([]data.Client, error) {
	type picture struct{ at, writer int }
	var pool []picture
	for w, c := range writers {
		for _, i := range c.Index {
			pool = append(pool, picture{i, w})
		}
	}
	if clients < 1 || len(writers) == 0 {
		return nil, fmt.Errorf("the pictures of %d writers for %d clients", len(writers), clients)
	}
	im := writers[0].Images
	family := rng.NewFamily(seed, "bounded-dp: partition")
	if each == 0 {
		each = len(pool) / clients
	}
	pieces := 1
	if how == byLabel {
		pieces = 2
	}
	each -= each % pieces
	if each < 1 || each > len(pool)/clients {
		return nil, fmt.Errorf("%d pictures for each of %d clients, %s: there are %d, which is enough for %d each", each, clients, how, len(pool), len(pool)/clients)
	}
	order := make([]int, len(pool))
	for i := range order {
		order[i] = i
	}
	family.Stream(0, 0).Shuffle(order)
	order = order[:clients*each]
	slices.SortStableFunc(order, func(a, b int) int {
		switch how {
		case byWriter:
			return pool[a].writer - pool[b].writer
		case byLabel:
			return im.Labels[pool[a].at] - im.Labels[pool[b].at]
		}
		return 0
	})
	whose := make([]int, clients*pieces)
	for i := range whose {
		whose[i] = i % clients
	}
	family.Stream(1, 0).Shuffle(whose)
	out := make([]data.Client, clients)
	for piece, client := range whose {
		out[client].Images = im
		for _, i := range order[piece*each/pieces : (piece+1)*each/pieces] {
			out[client].Index = append(out[client].Index, pool[i].at)
		}
	}
	return out, nil
}
