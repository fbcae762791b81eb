'use strict';

/** @type {import('jest').Config} */
module.exports = {
  // One process: the scorer under test is one per process, and so is its thread pool.
  maxWorkers: 1,
  // Packages of platforms, models and transcripts are not modules of the project.
  modulePathIgnorePatterns: ['<rootDir>/npm/', '<rootDir>/target/', '<rootDir>/crates/'],
  testMatch: ['<rootDir>/__test__/**/*.spec.js'],
  // For each test, on Bun too. Generous, because it is no measurement: machines under load must pass too.
  testTimeout: 300_000,
};
