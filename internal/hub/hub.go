// Package hub finds models of the Hugging Face Hub by their ids: in the cache
// that transformers fills, or by downloading their config.json, and nothing
// else, into that cache.
//
// The cache is laid out as huggingface_hub's file_download.py does:
//
//	models--Qwen--Qwen3-8B/refs/main                   the commit of a branch
//	models--Qwen--Qwen3-8B/snapshots/COMMIT/config.json  a link to the next
//	models--Qwen--Qwen3-8B/blobs/ETAG                  a file's content
package hub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Hub is where models are looked up.
type Hub struct {
	Cache    string // the folder of the local cache
	Endpoint string // the Hub's address
	Token    string // the user's, empty without one
	Offline  bool   // the user forbids downloads
	Client   *http.Client
}

// RemoteModel is the configuration of a model of the Hub.
type RemoteModel struct {
	ID       string
	Revision string // the commit
	Config   []byte
	Cached   bool // not downloaded now
}

// newModel returns a model with its id and commit in its configuration, under the keys
// that from_pretrained adds.
func newModel(id, revision string, config []byte, cached bool) (*RemoteModel, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(config, &keys); err != nil || keys == nil {
		return nil, fmt.Errorf("%s: its config.json is not a config.json", id)
	}
	keys["_name_or_path"], _ = json.Marshal(id)
	if keys["_commit_hash"], _ = json.Marshal(revision); revision == "" {
		keys["_commit_hash"] = json.RawMessage(`"unknown"`) // a mirror that does not say
	}
	config, err := json.Marshal(keys)
	return &RemoteModel{ID: id, Revision: revision, Config: config, Cached: cached}, err
}

// FromEnvironment returns the Hub as huggingface_hub's environment variables
// describe it (its constants.py).
func FromEnvironment(lookup func(string) string) *Hub {
	user, _ := os.UserHomeDir()
	base := cmp.Or(lookup("HF_HOME"), filepath.Join(cmp.Or(lookup("XDG_CACHE_HOME"), filepath.Join(user, ".cache")), "huggingface"))
	h := &Hub{
		Cache:    cmp.Or(lookup("HF_HUB_CACHE"), lookup("HUGGINGFACE_HUB_CACHE"), filepath.Join(base, "hub")),
		Endpoint: strings.TrimRight(cmp.Or(lookup("HF_ENDPOINT"), "https://huggingface.co"), "/"),
		Token:    strings.TrimSpace(cmp.Or(lookup("HF_TOKEN"), lookup("HUGGING_FACE_HUB_TOKEN"))),
		Offline:  isOn(lookup("HF_HUB_OFFLINE")) || isOn(lookup("TRANSFORMERS_OFFLINE")),
		Client:   http.DefaultClient,
	}
	if h.Token == "" {
		text, _ := os.ReadFile(cmp.Or(lookup("HF_TOKEN_PATH"), filepath.Join(base, "token"))) // without the file there is no token
		h.Token = strings.TrimSpace(string(text))
	}
	if isOn(lookup("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		h.Token = ""
	}
	return h
}

// isOn reads a variable as huggingface_hub does.
func isOn(value string) bool {
	switch strings.ToUpper(value) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// repository matches ids of models, with their owner or, for the oldest, without,
// and perhaps a revision (huggingface_hub's validate_repo_id).
var repository = regexp.MustCompile(`^((?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95})(?:@([\w][\w./-]{0,127}))?$`)

// ParseID splits what a user wrote into an id and its revision, main if there is none.
func ParseID(name string) (id, revision string, ok bool) {
	m := repository.FindStringSubmatch(name)
	if m == nil || strings.Contains(name, "--") || strings.Contains(name, "..") {
		return "", "", false
	}
	return m[1], cmp.Or(m[2], "main"), true
}

// HasOwner reports whether a name is an id with its owner, which no model of the
// catalog and no typing error looks like.
func HasOwner(name string) bool {
	id, _, ok := ParseID(name)
	return ok && strings.Contains(id, "/")
}
