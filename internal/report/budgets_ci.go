package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"memorymark/internal/check"
)

// The parts of SARIF 2.1.0 (OASIS) that code scanning shows.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		ID       int `json:"id,omitempty"`
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region struct {
				StartLine int `json:"startLine"`
			} `json:"region"`
		} `json:"physicalLocation"`
		Message *sarifText `json:"message,omitempty"`
	}
)

var sarifRules = []sarifRule{
	{"does-not-fit", sarifText{"The workload runs out of memory on its GPU"}},
	{"over-budget", sarifText{"The workload reserves more than it may"}},
	{"grown", sarifText{"The workload allocates more than in the baseline"}},
}

// ruleOf is the rule that a workload breaks.
func ruleOf(v *check.BudgetVerdict) string {
	switch {
	case !v.Fits:
		return "does-not-fit"
	case v.Max > 0 && v.Reserved > v.Max:
		return "over-budget"
	default:
		return "grown"
	}
}

// sourceLine matches a place that is a line of source code, as "train.py:12 forward".
var sourceLine = regexp.MustCompile(`^(\S+\.py):(\d+)\b`)

// WriteSARIF writes what exceeds its budget for code scanning: at the workload's line of
// the file, with the lines of code that grew.
func (c Budgets) WriteSARIF(w io.Writer, file, version string) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "MemoryMark", Version: version, Rules: sarifRules}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		if v.Reason == "" {
			continue
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: ruleOf(v), Level: "error", Message: sarifText{v.Name + ": " + v.Reason},
			Locations: []sarifLocation{at(file, max(v.Line, 1))}, Related: grownLines(file, v),
			Fingerprints: map[string]string{"memorymark/v1": v.Name + "/" + ruleOf(v)},
		})
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func at(file string, line int) (l sarifLocation) {
	l.Physical.Artifact.URI, l.Physical.Region.StartLine = file, line
	return l
}

// grownLines are the lines of the user's code where a workload needs more than before.
func grownLines(file string, v *check.BudgetVerdict) []sarifLocation {
	var out []sarifLocation
	for _, g := range v.Grown {
		m := sourceLine.FindStringSubmatch(g.Where)
		if m == nil || g.By <= 0 || len(out) == maxGrown {
			continue
		}
		line, _ := strconv.Atoi(m[2])
		l := at(path.Join(path.Dir(file), m[1]), line)
		l.ID, l.Message = len(out)+1, &sarifText{fmt.Sprintf("%s more for %s", g.By, strings.ReplaceAll(g.For, "_", " "))}
		out = append(out, l)
	}
	return out
}

// The parts of JUnit's XML that CI systems show.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes each workload as a test case.
func (c Budgets) WriteJUnit(w io.Writer, file string) error {
	suite := junitSuite{Name: "memorymark check " + file, Tests: len(c.Verdicts), Failures: c.Failed()}
	for i := range c.Verdicts {
		v := &c.Verdicts[i]
		test := junitCase{Class: "memorymark", Name: v.Name, File: file, Line: v.Line}
		if v.Fits {
			test.Output = fmt.Sprintf("%s: allocates %v, reserves %v", v.Engine, v.Allocated, v.Reserved)
		}
		if v.Reason != "" {
			var text strings.Builder
			_ = WriteText(&text, ciWidth, func(w io.Writer, width int) error { writeGrown(w, width, v); return nil }) // into memory
			test.Failure = &junitFailure{Type: ruleOf(v), Message: v.Reason, Text: text.String()}
		}
		suite.Cases = append(suite.Cases, test)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	if err := out.Encode(junitSuites{Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// ciWidth is how wide text is that a CI system shows.
const ciWidth = 100
