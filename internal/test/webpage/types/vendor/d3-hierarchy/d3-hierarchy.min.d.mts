export interface Node<T> {
  data: T;
  x: number;
  y: number;
  descendants(): Node<T>[];
  links(): { source: Node<T>; target: Node<T> }[];
}
export function hierarchy<T>(data: T): Node<T>;
export function tree(): { (root: unknown): unknown; nodeSize(size: [number, number]): (root: unknown) => unknown };
