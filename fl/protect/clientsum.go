package protect

import (
	"math"

	"github.com/coterie-fl/coterie/dp/mech"
	"github.com/coterie-fl/coterie/fl"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Gather clips every update again, for a participant may not have, sums, adds noise and
// divides by the public number of participants: one release stands for all.
func (m *client) Gather(st *fl.State, r fl.Releases) (fl.Releases, error) {
	if st.Round > m.outline.Sends {
		return r, nil
	}
	kept := m.memory(st)
	mean, second, err := m.noised(st.Round, r, &kept)
	if err != nil {
		return r, err
	}
	around := kept.around(m.privacy.Recentre)
	for i := range mean {
		mean[i] /= float64(m.Participants)
	}
	for i, v := range around { // what everybody's update was taken less
		mean[i] += v
	}
	moved := kept.move(mean, m.cfg.ServerMomentum)
	for i, v := range moved {
		moved[i] = st.Hypotheses[i] + v
	}
	m.learn(st.Round, &kept, mean, second)
	return fl.Releases{Clients: []int{0}, Vectors: moved, Declined: r.Declined}, nil
}

// noised is the sum of the updates, each clipped (one that is not finite counts as zero),
// and the sum that the clip is learned from, if it is, with the noise that everybody is
// charged for.
func (m *client) noised(round int, r fl.Releases, kept *serverMemory) (sum, second []float64, err error) {
	plan := m.plan()
	release, err := plan.Release(false, false)
	if err != nil {
		return nil, nil, err
	}
	paid, err := mech.NewPaid(release)
	if err != nil {
		return nil, nil, err
	}
	updates := clientUpdates{m: m, r: r, clip: kept.clip(), around: kept.around(m.privacy.Recentre)}
	updates.recentre()
	noise := mech.Gaussian{Multiplier: m.noise}
	if m.split != nil {
		if paid, err = paid.Split(*m.split); err != nil {
			return nil, nil, err
		}
		noise = m.split.First
		if second, err = updates.second(m.split.Second, paid, m.server.Stream(round, 1)); err != nil {
			return nil, nil, err
		}
	}
	sum = make([]float64, m.n)
	source := m.server.Stream(round, 0)
	if axis := kept.axis(m.privacy.Sector); axis != nil {
		return sum, second, updates.inSector(sum, axis, noise, paid, source)
	}
	return sum, second, noisedSum(sum, m.privacy.Noise, noise.Multiplier, updates.clip, paid, source, updates.inBall)
}

// clientUpdates are those of one round. Clipping changes them in place.
type clientUpdates struct {
	m      *client
	r      fl.Releases
	clip   float64
	around []float64 // public, subtracted from everybody's; nil: 0
}

// each is the i-th update.
func (u *clientUpdates) each(i int) []float64 { return u.r.Vectors[i*u.m.n : (i+1)*u.m.n] }

// recentre takes all updates less the public point. Whoever declined sent, in effect, that
// point itself.
func (u *clientUpdates) recentre() {
	for i := range u.r.Clients {
		v := u.each(i)
		for j, a := range u.around {
			v[j] -= a
		}
	}
}

// inBall adds every update, clipped to a ball.
func (u *clientUpdates) inBall(add func(mech.Clipped) error) error {
	for i := range u.r.Clients {
		clipped, err := mech.Clip(u.each(i), u.clip)
		if err == nil {
			err = add(clipped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inSector sets dst to the noised sum of all updates, brought into the sector around an
// axis. Whoever declined counts as the sector's own answer to nothing: a sum without it
// could lie further away than one with another update in its place.
func (u *clientUpdates) inSector(dst, axis []float64, noise mech.Gaussian, paid *mech.Paid, source *rng.Stream) error {
	s := u.m.privacy.Sector
	sector, err := mech.NewSector(axis, min(1, s.Lower)*u.clip, u.clip, min(s.Angle*(math.Pi/180), math.Pi))
	if err != nil {
		return err
	}
	nothing := make([]float64, u.m.n)
	all := func(add func(mech.SectorClipped) error) error {
		for i := range u.m.Participants {
			v := nothing
			if clear(v); i < len(u.r.Clients) {
				v = u.each(i)
			}
			clipped, err := sector.Clip(v)
			if err == nil {
				err = add(clipped)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if u.m.privacy.Noise == "simulated" {
		sum := mech.NewSimulatedSectorSum(sector)
		if err := all(sum.AddSector); err != nil {
			return err
		}
		return paid.Simulate(noise, dst, sum, source)
	}
	lattice, err := noise.Lattice(sector.Diameter() / 2)
	if err != nil {
		return err
	}
	sum, err := mech.NewSectorSum(sector, lattice)
	if err != nil {
		return err
	}
	if err := all(sum.AddSector); err != nil {
		return err
	}
	return exactSum(dst, u.m.privacy.Noise, noise, sum, paid, source)
}

// second is the noised sum that the clip is learned from: of halves, plus for an update
// within the clip and minus for a longer one; or of the directions of the longer ones,
// which is how the sum of updates grows with the clip.
func (u *clientUpdates) second(noise mech.Gaussian, paid *mech.Paid, source *rng.Stream) ([]float64, error) {
	signal := u.m.rule.Signal
	out, part := make([]float64, signal.Length(u.m.n)), make([]float64, signal.Length(u.m.n))
	return out, noisedSum(out, u.m.privacy.Noise, noise.Multiplier, signal.Bound(), paid, source, func(add func(mech.Clipped) error) error {
		for i := range u.r.Clients {
			clipped, err := signal.Of(part, u.each(i), u.clip)
			if err == nil {
				err = add(clipped)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
