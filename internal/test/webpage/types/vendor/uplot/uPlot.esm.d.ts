export default class uPlot {
  constructor(options: any, data: number[][], place: HTMLElement);
  static tzDate(date: Date, zone: string): Date;
  root: HTMLElement;
  setData(data: number[][]): void;
}
