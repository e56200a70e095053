package models

import (
	"errors"
	"fmt"
)

// checkEncoder checks what the encoders' configurations have in common.
func checkEncoder(labels, chunk int64, dropouts ...float64) error {
	var all []error
	for _, p := range dropouts {
		if p < 0 || p >= 1 {
			all = append(all, fmt.Errorf("config: a dropout is %g; it must be at least 0 and less than 1", p))
		}
	}
	if labels < 2 {
		all = append(all, fmt.Errorf("config: regression (num_labels %d) is not modelled", labels))
	}
	if chunk != 0 {
		all = append(all, errors.New("config: chunk_size_feed_forward is not modelled"))
	}
	return errors.Join(all...)
}
