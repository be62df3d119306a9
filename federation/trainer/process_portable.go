//go:build !linux

package trainer

// reap waits for the child's end, then kills what it leaves behind in its group.
func (p *process) reap() {
	p.cmd.Wait() // its state is all we want to know
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p.cmd.Process)
	p.reaped = true
}
