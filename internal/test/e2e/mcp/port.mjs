// port.mjs SCRIPT ARGS…: runs a server of HTTP on a free port of loopback, and
// prints {"port": n} when it listens. For servers that take $PORT.
import net from "node:net";
import { pathToFileURL } from "node:url";

process.env.PORT = "0";
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once("listening", () => console.log(JSON.stringify({ port: this.address().port })));
  return listen.call(this, { port: Number(port), host: "127.0.0.1" }, ...rest.filter((arg) => typeof arg === "function"));
};
process.stdin.resume().on("end", () => process.exit(0));
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]));
