package artifact

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/data"
)

// Choice is the model that somebody's rows are given to, and why it is that one.
type Choice struct {
	Entry
	Why string

	theta         []float64
	centre, scale []float64 // nil: inputs are as they are
}

// String names the model as predictions do.
func (c *Choice) String() string {
	switch c.Role {
	case RoleClient:
		return "client " + c.Client
	case RoleCluster:
		return fmt.Sprintf("cluster %d", *c.Cluster)
	}
	return string(c.Role)
}

// Scaled are the constants that inputs are scaled by before they reach the model, (x -
// centre)/scale; nil: they are not.
func (c *Choice) Scaled() (centre, scale []float64) { return c.centre, c.scale }

// Parameters are the model's own.
func (c *Choice) Parameters() []float64 { return c.theta }

// ErrWhose means that it cannot be said whose model is meant.
var ErrWhose = errors.New("no model can be chosen")

// ErrNeedsLabels means that a client which was not there must show labelled rows or
// pictures, so that the cluster can be found that fits them.
var ErrNeedsLabels = fmt.Errorf("%w without labels", ErrWhose)

// Choose is the model for a client's rows: its own, or else what the method can give
// somebody who was not there. An empty name is a newcomer, but in the folder of one
// participant that participant.
func (m *Model) Choose(client string) (Choice, error) {
	if client == "" && len(m.clients) == 1 {
		client = m.Clients()[0]
	}
	if at, ok := m.clients[client]; ok {
		c := m.choices[at]
		c.Why = m.ownWords(&c)
		return m.whole(c)
	}
	who := fmt.Sprintf("%s was not there in training", client)
	if client == "" {
		who = "no client is named"
	}
	switch m.Newcomer {
	case RoleGlobal:
		c, err := m.first(RoleGlobal)
		c.Why = fmt.Sprintf("%s, and %s trains one model for all", who, m.Method)
		return c, err
	case RoleMean:
		c, err := m.mean()
		c.Why = fmt.Sprintf("%s, so that it gets the mean of the personal models that %s trains", who, m.Method)
		return c, err
	case RoleCluster:
		labelled := "rows with the target"
		if m.Shape.Pictures() {
			labelled = "pictures in class folders, or with labels"
		}
		return Choice{}, fmt.Errorf("%w: %s, and %s keeps a model for each of %d clusters: give some of its %s, so that the one can be found that fits them, or name the cluster (--cluster)", ErrNeedsLabels, who, m.Method, m.Clusters(), labelled)
	}
	return Choice{}, fmt.Errorf("%w: %s, and %s holds no model for others than %s", ErrWhose, who, m.Path, few(m.Clients()))
}

// ownWords say what a client's model is: folders list one for everybody, of methods that
// share a model, too.
func (m *Model) ownWords(own *Choice) string {
	for i := range m.choices {
		c := &m.choices[i]
		switch {
		case c.Role == RoleGlobal && m.Newcomer == RoleGlobal && slices.Equal(c.theta, own.theta):
			return fmt.Sprintf("%s trains one model for all, and %s has it", m.Method, own.Client)
		case c.Role == RoleCluster && own.Cluster != nil && *c.Cluster == *own.Cluster && slices.Equal(c.theta, own.theta):
			return fmt.Sprintf("%s has the model of cluster %d", own.Client, *c.Cluster)
		}
	}
	return fmt.Sprintf("%s has a model of its own", own.Client)
}

// Clusters is how many models the server keeps for clients to choose from; 0: none.
func (m *Model) Clusters() int {
	n := 0
	for _, c := range m.choices {
		if c.Role == RoleCluster {
			n++
		}
	}
	return n
}

// Cluster is the model of a cluster.
func (m *Model) Cluster(k int) (Choice, error) {
	for _, c := range m.choices {
		if c.Role == RoleCluster && *c.Cluster == k {
			c.Why = fmt.Sprintf("cluster %d was asked for", k)
			return m.whole(c)
		}
	}
	n := m.Clusters()
	if n == 0 {
		return Choice{}, fmt.Errorf("%w: cluster %d was asked for, but %s keeps no clusters", ErrWhose, k, m.Method)
	}
	return Choice{}, fmt.Errorf("%w: there is no cluster %d; allowed: 0 to %d", ErrWhose, k, n-1)
}

// first is the folder's first model of a role.
func (m *Model) first(role Role) (Choice, error) {
	for _, c := range m.choices {
		if c.Role == role {
			return m.whole(c)
		}
	}
	return Choice{}, fmt.Errorf("%w: %s lists no %s model", ErrWhose, DescriptionFile, role)
}

// mean is the server's mean of the personal models, or else that of those in the folder.
func (m *Model) mean() (Choice, error) {
	if c, err := m.first(RoleMean); err == nil {
		return c, nil
	}
	c := Choice{Entry: Entry{Role: RoleMean}, theta: make([]float64, m.parameters)}
	if len(m.clients) == 0 {
		return c, fmt.Errorf("%w: %s keeps no model at the server, and the folder holds no client's", ErrWhose, m.Method)
	}
	m.average(c.theta, func(c *Choice) []float64 { return c.theta })
	return m.whole(c)
}

// average sets dst to the mean over the clients that have such values, and says whether
// one has.
func (m *Model) average(dst []float64, of func(c *Choice) []float64) bool {
	n := 0
	for i := range m.choices {
		if v := of(&m.choices[i]); m.choices[i].Role == RoleClient && v != nil {
			n++
			for j, x := range v {
				dst[j] += (x - dst[j]) / float64(n)
			}
		}
	}
	return n > 0
}

// whole gives a model the constants that its inputs are scaled by where clients paid for
// such: those who have none get the mean of what the clients released. Constants that
// nobody released are in no folder, and without them a table's model says nothing.
func (m *Model) whole(c Choice) (Choice, error) {
	if m.Encoding != nil && m.Standardise == string(data.BySilo) {
		return c, fmt.Errorf("%w: its inputs were scaled by every client's own rows (data.standardise: silo), and no model carries such constants: train with data.standardise none or paid", ErrWhose)
	}
	if c.scale != nil || m.Standardise != string(data.ByPaid) {
		return c, nil
	}
	c.centre, c.scale = make([]float64, m.Shape.Features), make([]float64, m.Shape.Features)
	if !m.average(c.centre, func(c *Choice) []float64 { return c.centre }) || !m.average(c.scale, func(c *Choice) []float64 { return c.scale }) {
		return c, fmt.Errorf("%w: its inputs are scaled by constants that each participant released and keeps (data.standardise: paid), and %s has none: use a participant's out folder", ErrWhose, m.Path)
	}
	return c, nil
}

// Fit is the cluster whose model has the lowest loss on labelled rows, the lowest number
// on a tie; targets are encoded.
func (m *Model) Fit(x, y []float64) (Choice, error) {
	losses, err := m.addLosses(nil, x, y)
	if err != nil {
		return Choice{}, err
	}
	return m.fitting(losses, len(y))
}

// addLosses adds every cluster's loss on labelled rows to sums, which begin as nil.
func (m *Model) addLosses(sums, x, y []float64) ([]float64, error) {
	clusters := m.Clusters()
	if clusters == 0 {
		return sums, fmt.Errorf("%w: %s keeps no clusters to choose from", ErrWhose, m.Method)
	}
	if sums == nil {
		sums = make([]float64, clusters)
	}
	w, err := m.worker()
	if err != nil {
		return sums, err
	}
	defer m.workers.Put(w)
	each := make([]float64, min(len(y), chunkRows))
	for k := range sums {
		c, err := m.Cluster(k)
		if err != nil {
			return sums, err
		}
		for from := 0; from < len(y); from += chunkRows {
			to := min(from+chunkRows, len(y))
			w.lay(x[from*m.Shape.Features:to*m.Shape.Features], y[from:to], &c)
			if err := w.losses(each[:to-from], &c); err != nil {
				return sums, err
			}
			for _, e := range each[:to-from] {
				sums[k] += e
			}
		}
	}
	return sums, nil
}

// fitting is the cluster with the lowest of the losses.
func (m *Model) fitting(losses []float64, rows int) (Choice, error) {
	best := -1
	for k, l := range losses {
		if !math.IsNaN(l) && (best < 0 || l < losses[best]) {
			best = k
		}
	}
	if best < 0 || rows == 0 {
		return Choice{}, fmt.Errorf("%w: none of the %d rows has a target, or no loss is a number", ErrNeedsLabels, rows)
	}
	c, err := m.Cluster(best)
	c.Why = fmt.Sprintf("of %d clusters it fits the labelled %s best (%d of them)", len(losses), m.Examples(), rows)
	return c, err
}
