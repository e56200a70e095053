package models

import "memorymark/internal/torch"

// Program makes what a user trains: a function of the user's own file, train.py:make.
type Program interface {
	// Make makes the model on the device, with how it is fed and updated.
	Make(t *torch.Torch, r Run) (*Model, error)
}
