package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// uploadPause is how long to wait before an upload is tried again.
const uploadPause = 500 * time.Millisecond

// Snapshot uploads a file and returns the id that the server knows it by. It
// tries until the context ends, except when the server does not want it.
func (c *Client) Snapshot(ctx context.Context, path string) (id string, err error) {
	for {
		var again bool
		if id, again, err = c.try(ctx, path); !again {
			return id, err
		}
		select {
		case <-time.After(uploadPause):
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), err)
		}
	}
}

// try uploads once and reports whether to try again.
func (c *Client) try(ctx context.Context, path string) (id string, again bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	sum := sha256.New()
	query := url.Values{"name": {filepath.Base(path)}, "origin": {"measured"}}
	target := strings.TrimSuffix(c.URL, "/") + "/v1/snapshots?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, io.TeeReader(f, sum))
	if err != nil {
		return "", false, err
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	answer, err := c.http().Do(r)
	if err != nil {
		return "", true, fmt.Errorf("upload %s: %w", filepath.Base(path), err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return "", true, fmt.Errorf("upload %s: %w", filepath.Base(path), err)
	}
	if answer.StatusCode != http.StatusCreated {
		again = answer.StatusCode >= 500 && answer.StatusCode != http.StatusInsufficientStorage || answer.StatusCode == http.StatusTooManyRequests
		return "", again, fmt.Errorf("upload %s: the server answered %s: %.500s", filepath.Base(path), answer.Status, body)
	}
	return checkReceipt(body, hex.EncodeToString(sum.Sum(nil)))
}

// checkReceipt compares what the server says it got with what was sent: the id
// of a snapshot is its hash.
func checkReceipt(body []byte, sent string) (id string, again bool, err error) {
	var got struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return "", false, fmt.Errorf("upload: the server's answer is not a snapshot: %w", err)
	}
	if got.ID != sent {
		return "", true, fmt.Errorf("upload: the server has %s, but %s was sent", got.ID, sent)
	}
	return got.ID, false, nil
}
