package mcpserver_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// A sealed state that was not made by this server for this call does not open, whatever it is.
func FuzzSeal_Open(f *testing.F) {
	s := mcpserver.NewSealer(f)
	genuine := s.Seal(f, "call", time.Hour)
	for _, text := range []string{"", "A", genuine, genuine + "A", genuine[1:], genuine[:len(genuine)-1], genuine + "-TAMPERED", strings.ToLower(genuine), genuine + "=", genuine + "\n", strings.Repeat("A", 41<<10)} {
		f.Add(text, "call")
		f.Add(text, "other")
	}
	f.Fuzz(func(t *testing.T, text, bound string) {
		err := s.Open(text, bound)
		if text == genuine && bound == "call" {
			if err != nil {
				t.Errorf("the genuine state: %v", err)
			}
			return
		}
		if errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%q for %q: %v", text, bound, err)
		}
	})
}

// No bit of a sealed state can be changed.
func TestSeal_EveryBit(t *testing.T) {
	s := mcpserver.NewSealer(t)
	data, err := base64.RawURLEncoding.DecodeString(s.Seal(t, "call", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(data) * 8 {
		data[i/8] ^= 1 << (i % 8)
		if err := s.Open(base64.RawURLEncoding.EncodeToString(data), "call"); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Fatalf("bit %d: %v", i, err)
		}
		data[i/8] ^= 1 << (i % 8)
	}
}

// A state is used once, and remembered until it does not open any more. One sender cannot fill the
// memory of others.
func TestSeal_UsedOnce(t *testing.T) {
	s := mcpserver.NewSealer(t)
	now := time.Now()
	s.SetNow(func() time.Time { return now })
	if err := s.Use("ann", "first", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.Use("ann", "first", time.Minute); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("again: %v", err)
	}
	var err error
	for i := 0; err == nil && i < 1<<15; i++ {
		err = s.Use("ann", strings.Repeat("x", i), time.Minute)
	}
	if errcode.CodeOf(err) != errcode.RateLimited {
		t.Errorf("many: %v", err)
	}
	if err := s.Use("bob", "first of bob", time.Minute); err != nil {
		t.Errorf("another sender: %v", err)
	}
	now = now.Add(2 * time.Minute)
	if err := s.Use("ann", "later", time.Minute); err != nil {
		t.Errorf("after the time of all of them: %v", err)
	}
	if err := s.Open(s.Seal(t, "call", -time.Second), "call"); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("a state that is too old: %v", err)
	}
}
