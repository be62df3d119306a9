// Package membership attacks trained models: can one tell from a model which examples, or which clients, it was trained on?
package membership
