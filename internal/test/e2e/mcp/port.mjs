// port.mjs SCRIPT ARGS…: runs an HTTP server that reads $PORT on a free loopback port,
// and prints {"port": n} when it listens.
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
