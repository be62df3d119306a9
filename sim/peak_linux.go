package sim

import "syscall"

// peakMemory is the most memory that the process had at once, in bytes; 0: not known.
func peakMemory() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss * 1024
}
