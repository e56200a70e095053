// Package reply is what a request of the page gets where there is no server: a status of
// HTTP and JSON, as the API has them.
package reply

import "encoding/json"

// Reply is what a request gets.
type Reply struct {
	Status int
	Type   string // of the body
	Body   []byte
}

// Statuses of HTTP, whose package is a third of a program's size.
const (
	OK            = 200
	Created       = 201
	NotFound      = 404
	TooLarge      = 413
	Unprocessable = 422
	NotHere       = 501
)

// Detail is one thing that is wrong with a request (RFC 9457, as the API has it).
type Detail struct {
	Message  string `json:"message"`
	Location string `json:"location,omitempty"`
}

// JSON answers with a value.
func JSON(status int, value any) Reply {
	data, err := json.Marshal(value)
	if err != nil {
		return Problem(Unprocessable, err.Error())
	}
	return Reply{status, "application/json", data}
}

// Problem says why there is no answer.
func Problem(status int, text string, details ...Detail) Reply {
	data, _ := json.Marshal(map[string]any{"status": status, "title": "Not answered", "detail": text, "errors": details}) // plain data
	return Reply{status, "application/problem+json", data}
}

// NeedsServer refuses what cannot be answered in the page.
func NeedsServer() Reply {
	return Problem(NotHere, "This needs a server: run memorymark serve on your machine, or uvx memorymark serve.")
}
