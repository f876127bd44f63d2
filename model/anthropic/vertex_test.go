package anthropic_test

import (
	"cmp"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const vertexPath = "/v1/projects/p/locations/europe-west1/publishers/anthropic"

// vertexSuite is suite for the same models on Vertex AI.
func vertexSuite() providertest.Suite {
	s := suite
	s.New = func(c provider.Config) *provider.Model {
		c.BaseURL = cmp.Or(c.BaseURL, "http://h") + vertexPath
		return anthropic.New(c)
	}
	s.CheckRequest = func(body string) string {
		if gjson.Get(body, "model").Exists() || gjson.Get(body, "anthropic_version").Str != "vertex-2023-10-16" {
			return "not a request of Vertex AI"
		}
		return checkRequest(body)
	}
	return s
}

func TestSuite_OnVertex(t *testing.T) { vertexSuite().Run(t) }

// Vertex AI has the model in the path and the version in the body. Its key is a token.
func TestNew_OnVertex(t *testing.T) {
	for stream, want := range map[bool]string{true: "streamRawPredict", false: "rawPredict"} {
		x := vertexSuite().Do(t, provider.Config{Model: "claude-sonnet-4-5@20250929", Stream: stream}, providertest.HelloRequest(), 200, ok)
		if x.Err != nil || x.Path != vertexPath+"/models/claude-sonnet-4-5@20250929:"+want {
			t.Errorf("sent to %s (%v), want %s", x.Path, x.Err, want)
		}
		if x.Header.Get("Authorization") != "Bearer "+key || x.Header.Get("x-api-key") != "" || x.Header.Get("anthropic-version") != "" {
			t.Errorf("headers %v", x.Header)
		}
		if !stream {
			continue
		}
		providertest.EqualJSON(t, x.Body, `{"anthropic_version":"vertex-2023-10-16","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hello","cache_control":{"type":"ephemeral"}}]}]}`)
	}
}
