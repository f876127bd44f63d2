package dbtest

import "testing"

func TestNewestProgram_ComparesNumbers(t *testing.T) {
	path := func(version string) string { return "/usr/lib/postgresql/" + version + "/bin/initdb" }
	for _, c := range []struct {
		installed []string
		want      string
	}{
		{[]string{path("15")}, path("15")},
		{[]string{path("10"), path("9.6")}, path("10")},
		{[]string{path("100"), path("17"), path("9.5"), path("9.6")}, path("100")},
		{[]string{path("9.5"), path("9.6")}, path("9.6")},
		{[]string{path("15"), path("local")}, path("15")},
	} {
		if got := newestProgram(c.installed); got != c.want {
			t.Errorf("newest of %q: got %q, want %q", c.installed, got, c.want)
		}
	}
}

// A server that would have to run as an account that does not exist is not started as
// another one.
func TestServer_AccountMustExist(t *testing.T) {
	s := server{name: "none", account: "no-such-account"}
	if err := s.findAccount(0); err == nil {
		t.Error("an account that does not exist was found")
	}
	if err := s.findAccount(1000); err != nil || s.owner != nil {
		t.Errorf("got %v, %v for tests that do not run as root, want no account", s.owner, err)
	}
}
