import type { Writable } from 'node:stream';
import type { OperationReport } from './operations.js';
import { Painter } from './paint.js';
import {
  renderConnection,
  renderDevices,
  renderMeasurements,
  renderOperation,
  renderOperationsEnd,
  renderPlatform,
} from './render.js';
import type { DemoReport, Measurement } from './report.js';

/** Takes the parts of the report in their order. */
export interface Output {
  platform(platform: DemoReport['platform']): void;
  devices(devices: DemoReport['devices']): void;
  connection(connection: DemoReport['connection']): void;
  operation(operation: OperationReport): void;
  operationsEnd(operations: OperationReport[]): void;
  measurements(measurements: Measurement[]): void;
}

/** Lines for a reader, as they come. */
export class TextOutput implements Output {
  readonly #stream: Writable;
  readonly #paint: Painter;
  #inOperations = false;

  constructor(stream: Writable) {
    this.#stream = stream;
    this.#paint = new Painter(stream);
  }

  platform(platform: DemoReport['platform']): void {
    this.#write(renderPlatform(platform, this.#paint));
  }

  devices(devices: DemoReport['devices']): void {
    this.#write(renderDevices(devices, this.#paint));
  }

  connection(connection: DemoReport['connection']): void {
    this.#write(renderConnection(connection, this.#paint));
  }

  operation(operation: OperationReport): void {
    if (!this.#inOperations) this.#write(this.#paint.heading('Operations'));
    this.#inOperations = true;
    this.#write(renderOperation(operation, this.#paint));
  }

  operationsEnd(operations: OperationReport[]): void {
    this.#write(renderOperationsEnd(operations));
    this.#write(this.#paint.heading('Bandwidth and latency by message size'));
  }

  measurements(measurements: Measurement[]): void {
    this.#write(renderMeasurements(measurements));
  }

  #write(text: string): void {
    this.#stream.write(`${text}\n`);
  }
}

/** One JSON object, once all is there. */
export class JsonOutput implements Output {
  readonly #stream: Writable;
  readonly #report: Partial<DemoReport> = {};

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  platform(platform: DemoReport['platform']): void {
    this.#report.platform = platform;
  }

  devices(devices: DemoReport['devices']): void {
    this.#report.devices = devices;
  }

  connection(connection: DemoReport['connection']): void {
    this.#report.connection = connection;
  }

  operation(): void {}

  operationsEnd(operations: OperationReport[]): void {
    this.#report.operations = operations;
  }

  measurements(measurements: Measurement[]): void {
    this.#report.measurements = measurements;
    this.#stream.write(`${JSON.stringify(this.#report, null, 2)}\n`);
  }
}
