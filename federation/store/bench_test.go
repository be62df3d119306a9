package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"
)

// TestSQLiteIsSafe: what is acknowledged has reached the disk.
func TestSQLiteIsSafe(t *testing.T) {
	s := backend{address: filepath.Join(t.TempDir(), "store.db")}.open(t).(*sqlStore)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		check(t, s.db.QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

// BenchmarkUpload is one update of 1,206,590 parameters, from the first byte to its
// receipt.
func BenchmarkUpload(b *testing.B) {
	content := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1_206_590)
	sum := sha256.Sum256(content)
	for _, size := range []int{len(content), 88} { // and the hospitals' 11 parameters
		b.Run(fmt.Sprintf("sqlite/%d", size), func(b *testing.B) {
			s, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := s.CreateRun(b.Context(), Run{ID: "r"}); err != nil {
				b.Fatal(err)
			}
			if size < len(content) {
				sum = sha256.Sum256(content[:size])
			}
			b.SetBytes(int64(size))
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				if err := s.OpenRound(b.Context(), Round{Run: "r", Number: n, Clients: []int{0}}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				up, err := s.Upload(b.Context(), Update{Run: "r", Round: n, SHA256: sum, Size: int64(size)})
				if err != nil {
					b.Fatal(err)
				}
				for at := 0; at < size; at += 1 << 20 {
					if _, err := up.Write(content[at:min(size, at+1<<20)]); err != nil {
						b.Fatal(err)
					}
				}
				_, err = up.Commit(b.Context(), &Receipt{Run: "r", Round: n, Participant: "north", Counter: uint64(n + 1)})
				if err != nil {
					b.Fatal(err)
				}
				up.Close()
				b.StopTimer()
				if err := s.CloseRound(b.Context(), "r", n, nil, noon); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
