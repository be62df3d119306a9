package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/internal/tier"
)

// TestWorkersOnAFullDisk: the disk of one node of three is full, then that of all of them.
// Without that node the others go on; the second stops everything until there is room
// again, and then the result is that of one machine.
func TestWorkersOnAFullDisk(t *testing.T) {
	if !*soak {
		t.Skip("it waits for servers, with -soak")
	}
	if os.Geteuid() != 0 {
		t.Skip("small disks are root's to make")
	}
	var folders [3]string
	for i := range folders {
		folders[i] = t.TempDir()
		if err := syscall.Mount("tmpfs", folders[i], "tmpfs", 0, "size=16m"); err != nil {
			t.Skipf("no small disk: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(folders[i], syscall.MNT_DETACH) })
	}
	cluster := tier.NATSCluster(t, folders)
	file, local, out := grid(t, 20000, 5, 4), t.TempDir(), t.TempDir()
	runJSON(t, "sweep", file, "--out", local)
	cmd, errs, _ := begin(t, `coterie worker`, "sweep", file, "--out", out, "--nats", cluster.URL, "--lease", "2s")
	c := &crew{t: t, args: []string{"--nats", cluster.URL}}
	defer c.dismiss()
	c.hire()
	c.hire()
	made := func() int {
		found, _ := filepath.Glob(filepath.Join(out, "cells", "*.json"))
		return len(found)
	}
	fill := func(i int) {
		f, err := os.Create(filepath.Join(folders[i], "ballast"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for block := make([]byte, 1<<16); len(block) > 0; {
			if _, err := f.Write(block); err != nil {
				block = block[:len(block)/2]
			}
		}
	}
	wait := func(n int, most time.Duration) bool {
		for deadline := time.Now().Add(most); made() < n; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				return false
			}
		}
		return true
	}
	if !wait(2, time.Minute) {
		t.Fatalf("nothing is made: %s\n%s", errs, c.said())
	}
	fill(0)
	time.Sleep(3 * time.Second)
	cluster.Kill(0) // a node that cannot write may go on to lead, and answer nothing: it is taken away
	if !wait(6, 2*time.Minute) {
		t.Fatalf("without the node whose disk is full nothing is made: %s\n%s", errs, c.said())
	}
	fill(1)
	fill(2)
	time.Sleep(3 * time.Second)
	before := made()
	time.Sleep(3 * time.Second)
	if before == 20 || made() != before {
		t.Errorf("%d cells when all disks were full, %d three seconds later: they were not full, or too late", before, made())
	}
	t.Logf("%d of 20 cells when all disks were full", before)
	for i := range folders { // room again, and servers that gave up are started again
		if err := os.Remove(filepath.Join(folders[i], "ballast")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range folders {
		cluster.Kill(i)
	}
	for i := range folders {
		cluster.Start(i)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, errs, c.said())
	}
	if !bytes.Equal(sweptIn(t, local), sweptIn(t, out)) {
		t.Error("the result is another than one process's")
	}
	if said := errs.String() + c.said(); strings.Contains(said, "cannot") {
		t.Logf("they said: %.300s", said[strings.Index(said, "cannot")-40:])
	}
}
