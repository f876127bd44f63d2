// Package contributing tests the walks of CONTRIBUTING.md.
package contributing
