package main

import "fmt"

// visitsPerHour is how many visits begin in each hour.
var visitsPerHour = [24]int{6, 4, 3, 3, 4, 5, 9, 14, 19, 23, 26, 28, 30, 29, 27, 26, 25, 27, 30, 33, 31, 25, 17, 10}

var browsers = []string{
	"Mozilla/5.0 (X11; Linux x86_64; rv:136.0) Gecko/20100101 Firefox/136.0",
	"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/134.0.0.0 Safari/537.36",
	"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Safari/605.1.15",
	"Mozilla/5.0 (iPhone; CPU iPhone OS 18_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Mobile/15E148 Safari/604.1",
	"Mozilla/5.0 (Android 15; Mobile; rv:136.0) Gecko/136.0 Firefox/136.0",
}

var apps = []string{"LampShop/4.12.0 (Android 15)", "LampShop/4.12.0 (iOS 18.3)", "LampShop/4.11.2 (Android 14)", "LampShop/4.9.0 (iOS 17.7)"}

const shop = "https://lamps.example"

var referrers = []string{"", "", "", "https://www.search.example/", "https://www.search.example/?q=desk+lamp", "https://news.example/design/lamps", shop + "/"}

var pages = []string{
	"/", "/lamps", "/lamps?page=2", "/lamps/brass-desk-lamp", "/lamps/paper-floor-lamp", "/lamps/reading-light-mini",
	"/lamps/workshop-pendant", "/search?q=warm+white", "/search?q=e27", "/about", "/delivery", "/blog/choosing-a-bulb",
}

var assets = []string{"/static/app.3f9c1b.js", "/static/app.3f9c1b.css", "/static/logo.svg", "/img/brass-desk-lamp-800.webp", "/img/paper-floor-lamp-800.webp", "/favicon.ico"}

var endpoints = []string{"/api/products?limit=24", "/api/products/1041", "/api/products/1187", "/api/products/2203", "/api/stock/1041", "/api/cart", "/api/session", "/api/recommendations"}

// client returns the address of visitor n; every ninth has an IPv6 address.
func client(n int) string {
	if n%9 == 4 {
		return fmt.Sprintf("2001:db8:%x:%x::%x", 0x20+n%7, n*37%4096, n%250+1)
	}
	nets := [3]string{"192.0.2", "198.51.100", "203.0.113"}
	return fmt.Sprintf("%s.%d", nets[n%3], 30+n*7%200)
}

// probes logs the load balancer's health checks, every three minutes.
func (d *day) probes() {
	for s := 11; s < 24*3600; s += 180 {
		d.log(s, request{client: "192.0.2.4", line: "GET /healthz HTTP/1.1", status: 200, size: 2, agent: "kube-probe/1.33"})
	}
}

// visits logs visitors: two in five with a browser, the others with the app.
func (d *day) visits() {
	for hour, n := range visitsPerHour {
		for range n {
			second := at(hour, d.between(0, 59), d.between(0, 59))
			visitor := d.between(0, 219)
			if visitor%5 < 2 {
				d.browse(second, client(visitor), browsers[visitor%len(browsers)])
			} else {
				d.useApp(second, client(visitor), apps[visitor%len(apps)])
			}
		}
	}
}

func (d *day) browse(second int, client, agent string) {
	referrer := pick(d, referrers)
	for range d.between(1, 3) {
		page := pick(d, pages)
		d.log(second, d.answer(request{client: client, line: "GET " + page + " HTTP/2.0", size: d.between(4200, 19800), referrer: referrer, agent: agent}))
		for range d.between(0, 2) {
			d.log(second+1, d.answer(request{client: client, line: "GET " + pick(d, assets) + " HTTP/2.0", size: d.between(900, 184000), referrer: shop + page, agent: agent}))
		}
		referrer = shop + page
		second += d.between(8, 95)
	}
}

func (d *day) useApp(second int, client, agent string) {
	for range d.between(3, 7) {
		d.log(second, d.answer(request{client: client, line: "GET " + pick(d, endpoints) + " HTTP/1.1", size: d.between(180, 6400), agent: agent}))
		second += d.between(1, 20)
	}
	if d.between(1, 5) == 1 && !broken(second) {
		d.log(second, request{client: client, line: "POST /api/checkout HTTP/1.1", status: 201, size: d.between(310, 460), agent: agent})
	}
}

// answer fills in the status and size of a request.
func (d *day) answer(r request) request {
	switch n := d.between(1, 1000); {
	case n <= 790:
		r.status = 200
	case n <= 900:
		r.status, r.size = 304, -1
	case n <= 945:
		r.status, r.size = 301, 162
	case n <= 975:
		r.status, r.size = 404, 548
	case n <= 985:
		r.status, r.size = 401, 87
	case n <= 992:
		r.status, r.size = 499, 0
	case n <= 995:
		r.status = 206
	default:
		r.status, r.size = 500, 170
	}
	return r
}
