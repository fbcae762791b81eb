'use strict';

/** @type {import('jest').Config} */
module.exports = {
  // One process: the scorer under test is one per process, and so is its thread pool.
  maxWorkers: 1,
  // Platform and model packages are not modules of the project.
  modulePathIgnorePatterns: ['<rootDir>/npm/', '<rootDir>/target/'],
  testMatch: ['<rootDir>/__test__/**/*.spec.js'],
  // Generous, because it is no measurement: machines under load must pass too.
  testTimeout: 120_000,
};
