// Package bytepair cuts text into words of a given vocabulary, as GPT-2 does: bytes, and
// what frequent pairs of earlier words make together.
package bytepair
