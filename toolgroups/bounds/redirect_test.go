package bounds_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// Each case has a rule, and the URLs to which a request may or may not be redirected.
func TestCheckURL(t *testing.T) {
	for _, c := range []struct {
		rule string
		want map[string]bool
	}{
		{`{"/url": {"url": {"host": "a.example", "path": "/v1/"}}}`, map[string]bool{
			"https://a.example/v1/x": true, "https://a.example/v2/": false, "https://b.example/v1/": false, "https://u@a.example/v1/": false, "https://a.example/v1/%2e%2e/": false}},
		{`{"/url": {"any": [{"url": {"host": "a.example"}}, {"equal": "https://b.example/"}]}}`, map[string]bool{"https://a.example/": true, "https://b.example/": true, "https://b.example/x": false}},
		{`{"/list/*": {"url": {"host": "a.example"}}}`, map[string]bool{"https://a.example/": true, "https://b.example/": false}},
		{`{"/url": {"url": {"host": "a.example"}, "glob": "https:**a.example*"}}`, map[string]bool{"https://a.example": false}},
		{`{"/url": {"equal": "https://a.example/"}, "/n": {"max": 1}}`, map[string]bool{"https://b.example/": true}},
	} {
		ctx := bounds.WithCall(context.Background(), bounds.BoundCall{Checks: []*bounds.Check{rule(t, c.rule).ForSchema(nil)}})
		for text, want := range c.want {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if v := bounds.CheckRedirect(ctx, u); (v == nil) != want {
				t.Errorf("%s to %s: %v", c.rule, text, v)
			}
			if v := bounds.CheckRedirect(context.Background(), u); v != nil {
				t.Errorf("a call without bounds: %v", v)
			}
		}
	}
}
