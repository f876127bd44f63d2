// Package webpage tests the web page of the gateway in a browser: headless Chromium, against
// the built program. It has no code beside its tests.
package webpage
