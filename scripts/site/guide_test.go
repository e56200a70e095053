package main

import (
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	title, got := markdown("# A *b*\n\nSee [x](y.md#z), `a*b*c` and **d & e**\nin a line.\n\n| h | i |\n|---|--:|\n| `x \\| y` | 2 |\n\n* one\n  two\n* three\n\n```sh\n<a> | b\n```\n",
		func(to string) string { return "/" + to })
	want := `<h1 id="a-b">A <em>b</em></h1>
<p>See <a href="/y.md#z">x</a>, <code>a*b*c</code> and <strong>d &amp; e</strong>
in a line.</p>
<table>
<tr><th>h</th><th>i</th></tr>
<tr><td><code>x | y</code></td><td>2</td></tr>
</table>
<ul>
<li>one
two</li>
<li>three</li>
</ul>
<pre>&lt;a&gt; | b</pre>
`
	if title != "A *b*" || got != want {
		t.Errorf("%q\n%s", title, got)
	}
}

func TestGuideLink(t *testing.T) {
	for to, want := range map[string]string{
		"in-ci.md#the-check": "../../docs/in-ci/#the-check", "../accuracy.md": "../../docs/accuracy/", "README.md": "../../docs/",
		"#here": "#here", "https://example.com/": "https://example.com/", "../images/page.png": "../../images/page.png", "../jobs.md": "",
	} {
		if got := guideLink("docs/guide/faq.md", "../../", to); got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
}

// A page of a model says the largest batch of each setup.
func TestAnswer(t *testing.T) {
	s := &site{}
	if err := s.choose("gpt2", "t4"); err != nil {
		t.Fatal(err)
	}
	r, w := answer(s.models[0], s.cards[0], setups[0].on(s.cards[0]))
	if r.Why != "" || r.Batch < 2 || r.One <= 0 || w.Sequence != longText || !strings.HasSuffix(r.Command, "--sequence 1024") {
		t.Errorf("%+v", r)
	}
	// The card has no bf16, and the link asks what the page says.
	if want := "model=gpt2&gpu=t4&batch=8&precision=amp-fp16&checkpointing=true&sequence=1024"; query(w, 8) != want || !strings.Contains(r.Command, "amp-fp16") {
		t.Errorf("%s is linked with %s, want %s", r.Command, query(w, 8), want)
	}
}
