package data

import "testing"

// TestPictureCount: a set counts once, whoever has examples of it, and with what is held out.
func TestPictureCount(t *testing.T) {
	set := func(n int) *Images {
		return &Images{Height: 1, Width: 1, Pixels: make([]byte, n), Labels: make([]int, n)}
	}
	of := func(s *Images) Client { return Client{Pictures: Pictures{Images: s, Index: []int{0}}} }
	shared, own, held := set(50), set(3), set(7)
	one := of(own)
	rest := of(held)
	one.Held = &rest
	if got := PictureCount([]Client{of(shared), of(shared), one}, []Client{of(shared), {}}); got != 60 {
		t.Errorf("%d pictures instead of 60", got)
	}
}
