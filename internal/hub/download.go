package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxConfig is the size of a config.json beyond which it is none.
const maxConfig = 4 << 20

// downloadTime is how long a small file may take to arrive.
const downloadTime = 30 * time.Second

var errTooLarge = fmt.Errorf("the file is larger than %d MiB, which no config.json is", maxConfig>>20)

// describing are the files that say what a repository contains, in the order in
// which they are looked for.
var describing = []string{"config.json", "adapter_config.json", "model_index.json"}

// Download fetches the config.json of a model, and nothing else, and keeps it in
// the cache. A repository that is no model is a *NoModelError, one that the user
// may not read or that does not exist an *AccessError.
func (h *Hub) Download(ctx context.Context, name string) (*RemoteModel, error) {
	id, revision, ok := ParseID(name)
	if !ok {
		return nil, fmt.Errorf("%q is not the id of a model of the Hugging Face Hub", name)
	}
	if h.Offline {
		return nil, &AccessError{ID: id, Why: "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids downloads", Hint: "unset it, or fill the cache on a machine with a network"}
	}
	ctx, stop := context.WithTimeout(ctx, downloadTime)
	defer stop()
	for _, file := range describing {
		got, err := h.get(ctx, id, revision, file)
		switch {
		case err != nil:
			return nil, err
		case got == nil:
			continue
		case file != "config.json":
			return nil, notOneModel(id, file, got.data)
		}
		m, err := newModel(id, got.commit, got.data, false)
		if err == nil && got.commit != "" {
			if err = h.store(id, revision, got); err != nil {
				err = fmt.Errorf("keep the config.json of %s in the cache %s: %w", id, h.Cache, err)
			}
		}
		return m, err
	}
	return nil, &NoModelError{ID: id, Why: "it has no config.json", Hint: "a model saved by transformers has one; give the path of a config.json that you have"}
}

// file is a file of a repository.
type file struct {
	data         []byte
	commit, etag string
}

// get fetches a file, nil if the repository does not have it.
func (h *Hub) get(ctx context.Context, id, revision, name string) (*file, error) {
	address := fmt.Sprintf("%s/%s/resolve/%s/%s", h.Endpoint, id, url.PathEscape(revision), name)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	r.Header.Set("User-Agent", "memorymark")
	if h.Token != "" {
		r.Header.Set("Authorization", "Bearer "+h.Token) // which Go does not send on to other hosts
	}
	response, err := h.client().Do(r)
	if err != nil {
		return nil, &AccessError{ID: id, Why: h.Endpoint + " cannot be reached: " + reason(err), Hint: "check the network and HF_ENDPOINT, or give the path of a config.json"}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, h.refused(id, revision, response)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxConfig+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("download %s: %w", address, err)
	case len(data) > maxConfig:
		return nil, fmt.Errorf("download %s: %w", address, errTooLarge)
	}
	return &file{
		data:   data,
		commit: first(response, "X-Repo-Commit", commit.MatchString),
		etag:   strings.Trim(strings.TrimPrefix(response.Header.Get("ETag"), "W/"), `"`),
	}, nil
}

// client returns the client, which keeps the headers that only the first answer has:
// the Hub redirects renamed models and large files.
func (h *Hub) client() *http.Client {
	if h.Client != nil {
		return h.Client
	}
	return http.DefaultClient
}

// first returns a header of an answer, or of the redirects before it.
func first(r *http.Response, header string, valid func(string) bool) string {
	for ; r != nil; r = r.Request.Response {
		if value := r.Header.Get(header); valid(value) {
			return value
		}
	}
	return ""
}

// refused says why a file was not given out: the Hub's X-Error-Code says more
// than the status (huggingface_hub's hf_raise_for_status). A file that is not in
// the repository is no error.
func (h *Hub) refused(id, revision string, r *http.Response) error {
	switch code := r.Header.Get("X-Error-Code"); {
	case code == "EntryNotFound":
		return nil
	case code == "RevisionNotFound":
		return &AccessError{ID: id, Why: fmt.Sprintf("it has no revision %q", revision), Hint: "leave out the revision, or give a branch, a tag or a commit of it"}
	case code == "GatedRepo" && h.Token == "":
		return &AccessError{ID: id, Why: "it is gated", Hint: fmt.Sprintf("accept its terms at %s/%s, then set HF_TOKEN or log in with hf auth login", h.Endpoint, id)}
	case code == "GatedRepo":
		return &AccessError{ID: id, Why: "it is gated, and your token has no access to it", Hint: fmt.Sprintf("accept its terms at %s/%s with the account of the token", h.Endpoint, id)}
	case code == "RepoNotFound" || r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusNotFound:
		hint := "check its spelling; if it is private, set HF_TOKEN or log in with hf auth login"
		if h.Token != "" {
			hint = "check its spelling; if it is private, your token must have access to it"
		}
		return &AccessError{ID: id, Why: "there is no such model on the Hub, or it is private", Hint: hint}
	default:
		return &AccessError{ID: id, Why: fmt.Sprintf("%s answered with %s", h.Endpoint, r.Status), Hint: "try again later, or give the path of a config.json"}
	}
}

// reason is the cause of a network error, without the address.
func reason(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}
